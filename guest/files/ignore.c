/* ignore: names that a search passes over. sbx-files; a table, nothing is lost here. */
#include "guest/files/ignore.h"

#include <string.h>

/* A name, or with an asterisk its two ends. */
static const char *const ignored[] = {
    ".git",
    ".svn",
    ".hg",
    ".bzr",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".env",
    "env",
    ".tox",
    ".nox",
    ".eggs",
    "*.egg-info",
    "site-packages",
    "dist",
    "build",
    ".next",
    ".nuxt",
    ".output",
    ".turbo",
    "target",
    "out",
    ".idea",
    ".vscode",
    "*.swp",
    "*.swo",
    "*~",
    ".project",
    ".classpath",
    ".settings",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "*.lnk",
    "*.log",
    "*.tmp",
    "*.temp",
    ".upload-*.part",
    "*.bak",
    "*.cache",
    ".cache",
    "logs",
    ".coverage",
    "coverage",
    ".nyc_output",
    "htmlcov",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
};

static bool is_like(const char *row, const char *name, size_t len)
{
	const char *star = strchr(row, '*');
	size_t head = star != NULL ? (size_t)(star - row) : 0;
	size_t tail;

	if (star == NULL)
		return strcmp(row, name) == 0;
	tail = strlen(star + 1);
	return len >= head + tail && memcmp(name, row, head) == 0 &&
	       memcmp(name + len - tail, star + 1, tail) == 0;
}

bool ignore_name(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		/* Most names differ in their first byte from most rows. */
		if (ignored[i][0] != name[0] && ignored[i][0] != '*')
			continue;
		if (is_like(ignored[i], name, len))
			return true;
	}
	return false;
}
