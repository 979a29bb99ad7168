/* top_bar: the last line, with what the function keys do. sbxtop; holds no state. */
#include <stdio.h>

#include "tools/top_app.h"

/* Together they are 80 columns. */
static const char *const bar[] = {"Help ", "Cols ", "Search ", "Filter ", "Events ", "Sort ",
    "Release ", "Pause ", "Kill ", "Quit"};

#define BAR (sizeof(bar) / sizeof(bar[0]))

void top_bar_line(struct top_line *l)
{
	for (size_t i = 0; i < BAR; i++) {
		top_line_put(l, STYLE_STRONG, "F%zu", i + 1);
		top_line_put(l, STYLE_KEY, "%s", bar[i]);
	}
}

int top_bar_hit(int x)
{
	int end = 0;

	for (size_t i = 0; i < BAR; i++) {
		end += snprintf(NULL, 0, "F%zu%s", i + 1, bar[i]);
		if (x < end)
			return (int)i + 1;
	}
	return 0;
}
