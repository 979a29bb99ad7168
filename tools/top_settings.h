/*
 * top_settings: how sbxtop looks to this user, kept in a file between runs.
 */
#ifndef SBXD_TOOLS_TOP_SETTINGS_H
#define SBXD_TOOLS_TOP_SETTINGS_H

#include "tools/top_columns.h"

#define TOP_INTERVAL_MIN 0.1 /* seconds */
#define TOP_INTERVAL_MAX 3600.0
#define TOP_EVENT_LINES_MAX 50

struct top_settings {
	double interval;
	struct top_layout layout;
	int sort; /* index of a column */
	bool descending;
	int event_lines; /* below the list; 0: none */
	bool changed;	 /* since it was loaded: worth saving */
};

void top_settings_default(struct top_settings *s);

/* $XDG_CONFIG_HOME/sbxtop.conf, else $HOME/.config/sbxtop.conf, into out. 0, -ENOENT (no home) or
 * -ENAMETOOLONG. */
int top_settings_path(char *const *env, char *out, size_t size);

/* Takes what is right in the file; a line that is not leaves the default. No file is no error. 0 or
 * -errno. */
int top_settings_load(struct top_settings *s, const char *path);

/* Replaces the file at once, or not at all; makes the directory. Clears `changed`. 0 or -errno. */
int top_settings_save(struct top_settings *s, const char *path);

/* "1.5" into seconds within the limits. 0 or -EINVAL. */
int top_parse_interval(const char *text, double *out);

#endif
