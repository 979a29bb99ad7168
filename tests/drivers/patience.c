/* patience: how long the suite waits. In the test process. */
#include "tests/drivers/patience.h"

#include "lib/clock.h"
#include "lib/fault.h"

int patience_factor(void)
{
	return (int)FAULT_SLOW();
}

int patience_ms(void)
{
	return 60000 * patience_factor();
}

uint64_t patience_start(void)
{
	return clock_now_ns() + 300 * NS_PER_S * FAULT_SLOW();
}

int patience_child_ms(void)
{
	return 600000 * patience_factor();
}

uint64_t patience_soon(void)
{
	return clock_now_ns() + 10 * NS_PER_S * FAULT_SLOW();
}

unsigned int patience_orphans_s(void)
{
	return 30 * FAULT_SLOW();
}
