/* mcp_tools: the tools, one table. sbx-mcp; holds no state. */
#include "tools/mcp_tools.h"

#include <string.h>

/* Schemas. Between the properties of an object stands ",". */
#define OBJECT(required, properties)                                                       \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[" required "]," \
	"\"properties\":{" properties "}}"
#define PROPERTY(name, type, about) "\"" name "\":{" type ",\"description\":\"" about "\"}"

#define TEXT(name, about) PROPERTY(name, "\"type\":\"string\"", about)
#define FLAG(name, about) PROPERTY(name, "\"type\":\"boolean\"", about)
#define SIZE(name, about) PROPERTY(name, "\"type\":\"integer\",\"minimum\":0", about)
#define COUNT(name, max, about) \
	PROPERTY(name, "\"type\":\"integer\",\"minimum\":1,\"maximum\":" max, about)
#define SECONDS(name, about) \
	PROPERTY(name, "\"type\":\"number\",\"minimum\":0.001,\"maximum\":86400", about)
/* Not "type":[...]: not every client knows that. */
#define NUMBER_OR_NULL(name, about) \
	PROPERTY(name, "\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]", about)
#define LIST(name, items, about) PROPERTY(name, "\"type\":\"array\",\"items\":" items, about)
#define LINES "1000000000"
#define RESULTS "10000"

#define PATH(about) TEXT("path", about " Relative to " MCP_WORKSPACE ", or absolute.")
#define WHERE PATH("Where to look; the workspace if absent.")
#define HOST_PATH(about) TEXT("host_path", about " Absolute, in a directory that is allowed.")
#define FILE_PATH TEXT("path", "The file in the sandbox, absolute.")
#define DIR_PATH TEXT("path", "Where it was looked, absolute.")
#define MORE FLAG("truncated", "There are more.")

/* clang-format off */
static const struct mcp_tool tools[] = {
    {
	.name = "run_command",
	.title = "Run a command",
	.description = "Runs a shell command in the sandbox and returns its output and exit code. When it times out, "
	    "it and all that it started are killed. What it leaves in the background lives on.",
	.input = OBJECT("\"command\"",
	    TEXT("command", "A line for the shell.") ","
	    TEXT("cwd", "Directory to run it in; " MCP_WORKSPACE " if absent.") ","
	    PROPERTY("env", "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}", "Variables to set.") ","
	    TEXT("stdin", "Its input; none if absent.") ","
	    SECONDS("timeout_seconds", "When to kill it.")),
	.output = OBJECT("\"exit_code\",\"signal\",\"timed_out\",\"stdout\",\"stderr\",\"truncated\",\"duration_ms\"",
	    NUMBER_OR_NULL("exit_code", "null: a signal ended it.") ","
	    NUMBER_OR_NULL("signal", "null: it exited.") ","
	    FLAG("timed_out", "It was killed for taking too long.") ","
	    TEXT("stdout", "Its beginning and its end, if it is long.") ","
	    TEXT("stderr", "Its beginning and its end, if it is long.") ","
	    FLAG("truncated", "Some of stdout or stderr was left out.") ","
	    PROPERTY("duration_ms", "\"type\":\"number\",\"minimum\":0", "Milliseconds.")),
	.destroys = true,
	.handler = &mcp_run_command,
    },
    {
	.name = "read_file",
	.title = "Read a file",
	.description = "Returns a text file of the sandbox, or some of its lines.",
	.input = OBJECT("\"path\"",
	    PATH("The file.") ","
	    COUNT("start_line", LINES, "The first line; 1 if absent.") ","
	    COUNT("end_line", LINES, "The last line; as many as fit if absent.")),
	.output = OBJECT("\"path\",\"content\",\"start_line\",\"lines\",\"truncated\",\"next_line\"",
	    FILE_PATH ","
	    TEXT("content", "The lines.") ","
	    COUNT("start_line", LINES, "The first of them.") ","
	    SIZE("lines", "How many there are.") ","
	    FLAG("truncated", "There is more than fits.") ","
	    NUMBER_OR_NULL("next_line", "Where to read on.")),
	.reads = true,
	.handler = &mcp_read_file,
    },
    {
	.name = "write_file",
	.title = "Write a file",
	.description = "Writes a text file in the sandbox, whole or not at all. Replaces one that is there; makes the "
	    "directories that it needs.",
	.input = OBJECT("\"path\",\"content\"",
	    PATH("The file.") ","
	    TEXT("content", "All of its text.") ","
	    FLAG("append", "true: the text is added at the end of the file.") ","
	    PROPERTY("mode", "\"type\":\"string\",\"pattern\":\"^[0-7]{3,4}$\"", "Permissions, octal, as 0755.")),
	.output = OBJECT("\"path\",\"bytes\"",
	    FILE_PATH ","
	    SIZE("bytes", "How many were written.")),
	.destroys = true,
	.handler = &mcp_write_file,
    },
    {
	.name = "edit_file",
	.title = "Edit a file",
	.description = "Replaces a text in a file of the sandbox by another. The old text must be there exactly once, "
	    "unless replace_all is true.",
	.input = OBJECT("\"path\",\"old_text\",\"new_text\"",
	    PATH("The file.") ","
	    TEXT("old_text", "What to replace, exactly as it is in the file, spaces and all.") ","
	    TEXT("new_text", "What to put there.") ","
	    FLAG("replace_all", "true: wherever it is found.")),
	.output = OBJECT("\"path\",\"replaced\",\"line\",\"bytes\"",
	    FILE_PATH ","
	    COUNT("replaced", LINES, "How many times.") ","
	    COUNT("line", LINES, "Where the first one was.") ","
	    SIZE("bytes", "How many the file has now.")),
	.destroys = true,
	.handler = &mcp_edit_file,
    },
    {
	.name = "list_dir",
	.title = "List a directory",
	.description = "Lists a directory of the sandbox, with types and sizes.",
	.input = OBJECT("",
	    WHERE ","
	    COUNT("depth", "2048", "How deep; 1, only the directory itself, if absent.") ","
	    COUNT("max_results", RESULTS, "Entries at most; 500 if absent.")),
	.output = OBJECT("\"path\",\"entries\",\"truncated\"",
	    DIR_PATH ","
	    LIST("entries", OBJECT("\"path\",\"type\",\"size\"",
		TEXT("path", "Relative to the directory.") ","
		TEXT("type", "file, directory, symlink, ...") ","
		SIZE("size", "Bytes.")), "In the order of their names.") ","
	    MORE),
	.reads = true,
	.handler = &mcp_list_dir,
    },
    {
	.name = "glob",
	.title = "Find files by name",
	.description = "Finds files in the sandbox whose path is like a pattern: * ? [...] within a name, ** for any "
	    "directories. Passes over what is built, fetched or version control.",
	.input = OBJECT("\"pattern\"",
	    TEXT("pattern", "As *.py or src/**/test_*.c") ","
	    WHERE ","
	    FLAG("include_dirs", "true: directories, too.") ","
	    COUNT("max_results", RESULTS, "Paths at most; 200 if absent.")),
	.output = OBJECT("\"path\",\"matches\",\"truncated\"",
	    DIR_PATH ","
	    LIST("matches", "{\"type\":\"string\"}", "Relative to path.") ","
	    MORE),
	.reads = true,
	.handler = &mcp_glob,
    },
    {
	.name = "grep",
	.title = "Find lines",
	.description = "Finds lines in files of the sandbox by a regular expression (PCRE2), or plain text. Passes "
	    "over what is built, fetched, binary or version control.",
	.input = OBJECT("\"pattern\"",
	    TEXT("pattern", "What to look for.") ","
	    WHERE ","
	    TEXT("glob", "Only in files whose path is like this, as *.c") ","
	    FLAG("literal", "true: the pattern is plain text.") ","
	    FLAG("case_sensitive", "true: upper and lower case differ.") ","
	    COUNT("max_results", RESULTS, "Lines at most; 100 if absent.")),
	.output = OBJECT("\"path\",\"matches\",\"truncated\"",
	    DIR_PATH ","
	    LIST("matches", OBJECT("\"path\",\"line_number\",\"line\"",
		TEXT("path", "Relative to path.") ","
		COUNT("line_number", LINES, "From 1.") ","
		TEXT("line", "Cut to 200 characters.")), "Line by line.") ","
	    MORE),
	.reads = true,
	.handler = &mcp_grep,
    },
    {
	.name = "upload",
	.title = "Copy a file into the sandbox",
	.description = "Copies a file of the host into the sandbox.",
	.input = OBJECT("\"host_path\",\"path\"",
	    HOST_PATH("The file on the host.") ","
	    PATH("What it is to be in the sandbox, name and all; replaced if it is there.")),
	.output = OBJECT("\"host_path\",\"path\",\"bytes\"",
	    TEXT("host_path", "The file on the host.") ","
	    FILE_PATH ","
	    SIZE("bytes", "How many.")),
	.destroys = true,
	.repeats = true,
	.host = true,
	.handler = &mcp_upload,
    },
    {
	.name = "download",
	.title = "Copy a file out of the sandbox",
	.description = "Copies a file of the sandbox to the host.",
	.input = OBJECT("\"path\",\"host_path\"",
	    PATH("The file in the sandbox.") ","
	    HOST_PATH("What it is to be on the host, name and all.") ","
	    FLAG("overwrite", "true: a file that is there is replaced.")),
	.output = OBJECT("\"path\",\"host_path\",\"bytes\"",
	    FILE_PATH ","
	    TEXT("host_path", "The file on the host.") ","
	    SIZE("bytes", "How many.")),
	.destroys = true,
	.host = true,
	.handler = &mcp_download,
    },
};
/* clang-format on */

#define TOOLS (sizeof(tools) / sizeof(tools[0]))

const struct mcp_tool *mcp_tool_find(const char *name, bool host)
{
	for (size_t i = 0; i < TOOLS; i++) {
		if (strcmp(tools[i].name, name) == 0)
			return tools[i].host && !host ? NULL : &tools[i];
	}
	return NULL;
}

static void put_tool(struct json_out *j, const struct mcp_tool *t)
{
	json_object_begin(j, NULL);
	json_put_string(j, "name", t->name);
	json_put_string(j, "title", t->title);
	json_put_string(j, "description", t->description);
	json_put_written(j, "inputSchema", t->input, strlen(t->input));
	json_put_written(j, "outputSchema", t->output, strlen(t->output));
	json_object_begin(j, "annotations");
	json_put_string(j, "title", t->title);
	json_put_bool(j, "readOnlyHint", t->reads);
	if (!t->reads) {
		json_put_bool(j, "destructiveHint", t->destroys);
		json_put_bool(j, "idempotentHint", t->repeats);
	}
	json_put_bool(j, "openWorldHint", false); /* there is the box, and nothing else */
	json_object_end(j);
	json_object_end(j);
}

void mcp_tools_put(struct json_out *j, bool host)
{
	json_array_begin(j, "tools");
	for (size_t i = 0; i < TOOLS; i++) {
		if (!tools[i].host || host)
			put_tool(j, &tools[i]);
	}
	json_array_end(j);
}
