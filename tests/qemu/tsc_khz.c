/* tsc_khz: prints the rate of this host's time stamp counter, for tests/qemu/check_kvm.sh. */
#include <stdio.h>

#include "drivers/qemu/tsc.h"

int main(void)
{
	return printf("%u\n", tsc_khz()) < 0;
}
