/* patience: how long the suite waits. In the test process. */
#include "tests/drivers/patience.h"

#include <stdlib.h>

#include "lib/clock.h"

#define SLOW_MAX 100UL

static unsigned int slow(void)
{
	const char *text = getenv("SBX_TEST_SLOW");
	unsigned long factor = text ? strtoul(text, NULL, 10) : 1;

	return factor < 1 ? 1 : factor > SLOW_MAX ? SLOW_MAX : (unsigned int)factor;
}

int patience_ms(void)
{
	return 60000 * (int)slow();
}

uint64_t patience_start(void)
{
	return clock_now_ns() + 300 * NS_PER_S * slow();
}

int patience_child_ms(void)
{
	return 600000 * (int)slow();
}

uint64_t patience_soon(void)
{
	return clock_now_ns() + 10 * NS_PER_S * slow();
}

unsigned int patience_orphans_s(void)
{
	return 30 * slow();
}
