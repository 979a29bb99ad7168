/*
 * top_options: the command line of sbxtop.
 */
#ifndef SBXD_TOOLS_TOP_OPTIONS_H
#define SBXD_TOOLS_TOP_OPTIONS_H

#include "tools/top_settings.h"

/* Texts point into argv or the environment. */
struct top_options {
	bool batch;
	bool json;
	bool replay;
	bool no_color;
	bool help;
	bool version;
	long count;	 /* snapshots, 0 without end */
	double interval; /* seconds, 0: as it is set */
	int sort;	 /* index of a column, -1: as it is set */
	bool inverted;	 /* and not the way that is usual for it */
	bool layout_given;
	struct top_layout layout;
	const char *filter;
	const char *instance;
	const char *socket;
	const char *replay_file; /* NULL: the instance's own table */
};

/* Reads argv. 0, or -EINVAL with *err saying what is wrong. */
int top_options_parse(struct top_options *o, int argc, char **argv, struct err *err);

/* What --help prints. */
const char *top_options_help(void);

#endif
