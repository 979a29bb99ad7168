/* cli_completion: sbxctl completion: the scripts by which shells ask for completions. Holds no
 * state. */
#include <string.h>

#include "tools/cli.h"

/* bash parts words at ':' and '=', too: it is given only what follows the last of these. */
static const char bash[] =
    "# bash completion of sbxctl: source <(sbxctl completion bash)\n"
    "_sbxctl() {\n"
    "\tlocal line=${COMP_LINE:0:COMP_POINT} words cur part word help\n"
    "\tread -a words <<< \"$line\"\n"
    "\t[[ $line == *[[:space:]] && $line != *\\\\[[:space:]] ]] && words+=(\"\")\n"
    "\tcur=${words[-1]} part=\n"
    "\t[[ $COMP_WORDBREAKS == *:* && $cur == *:* ]] && part=${cur%\"${cur##*:}\"}\n"
    "\t[[ $COMP_WORDBREAKS == *=* && $cur == -*=* ]] && part=${cur%%=*}=\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS=$'\\t' read -r word help; do\n"
    "\t\tcase $word in\n"
    "\t\t:files) while IFS= read -r word; do\n"
    "\t\t\t\t[[ -d $word ]] && word+=/ && compopt -o nospace 2> /dev/null\n"
    "\t\t\t\tCOMPREPLY+=(\"$(printf %q \"$word\")\")\n"
    "\t\t\tdone < <(compgen -f -- \"$cur\") ;;\n"
    "\t\t*) COMPREPLY+=(\"$(printf %q \"${word#\"$part\"}\")\")\n"
    "\t\t\t[[ $word == */ || $word == *= ]] && compopt -o nospace 2> /dev/null ;;\n"
    "\t\tesac\n"
    "\tdone < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2> /dev/null)\n"
    "}\n"
    "complete -F _sbxctl sbxctl\n";

static const char zsh[] =
    "#compdef sbxctl\n"
    "# zsh completion of sbxctl: source <(sbxctl completion zsh), or a file _sbxctl in $fpath\n"
    "_sbxctl() {\n"
    "\tlocal -a given open closed open_help closed_help\n"
    "\tlocal word help files=\n"
    "\tgiven=(\"${(@Q)words[2,CURRENT]}\")\n"
    "\twhile IFS=$'\\t' read -r word help; do\n"
    "\t\tcase $word in\n"
    "\t\t:files) files=1 ;;\n"
    "\t\t*/|*=) open+=(\"$word\"); open_help+=(\"$word  -- $help\") ;;\n"
    "\t\t*) closed+=(\"$word\"); closed_help+=(\"$word  -- $help\") ;;\n"
    "\t\tesac\n"
    "\tdone < <(\"${(Q)words[1]}\" __complete \"${given[@]}\" 2> /dev/null)\n"
    "\t(( $#closed )) && compadd -l -d closed_help -a closed\n"
    "\t(( $#open )) && compadd -S '' -l -d open_help -a open\n"
    "\t[[ -n $files ]] && _files\n"
    "\treturn 0\n"
    "}\n"
    "if [[ $funcstack[1] == _sbxctl ]]; then\n"
    "\t_sbxctl \"$@\"\n"
    "else\n"
    "\tcompdef _sbxctl sbxctl\n"
    "fi\n";

static const char fish[] = "# fish completion of sbxctl: sbxctl completion fish | source\n"
			   "function __sbxctl_complete\n"
			   "\tset -l given (commandline -opc) (commandline -ct)\n"
			   "\tset -l found ($given[1] __complete $given[2..-1] 2> /dev/null)\n"
			   "\tfor line in $found\n"
			   "\t\tif test $line = :files\n"
			   "\t\t\t__fish_complete_path (commandline -ct)\n"
			   "\t\telse\n"
			   "\t\t\tstring trim --right --chars \\t -- $line\n"
			   "\t\tend\n"
			   "\tend\n"
			   "end\n"
			   "complete -c sbxctl -f -k -a '(__sbxctl_complete)'\n";

static const struct {
	const char *shell;
	const char *script;
} scripts[] = {
    {"bash", bash},
    {"zsh", zsh},
    {"fish", fish},
};

static int completion_run(struct cli *cli, int argc, char **argv)
{
	int at = cli_parse(cli, NULL, argc, argv);

	if (at < 0)
		return -at;
	if (argc - at != 1)
		return cli_usage(cli, "one shell is expected: %s", cli->command->choices);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		if (!strcmp(argv[at], scripts[i].shell)) {
			(void)fputs(scripts[i].script, stdout); /* cli_finish() looks for errors */
			return cli_finish(CLI_OK);
		}
	}
	return cli_usage(cli, "'%s': the shells are %s", argv[at], cli->command->choices);
}

const struct cli_command cli_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .help = "print a script that has a shell complete the words of sbxctl",
    .words = {CLI_WORD_CHOICE, CLI_WORD_OTHER},
    .choices = "bash zsh fish",
    .run = completion_run,
};
