/* cli_print: output for people. sbxctl; holds no state. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tools/cli.h"

#define ATOMIC_OUT 4096 /* what a pipe that polls writable takes without blocking */

void cli_put_text(FILE *f, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		(void)fputc(
		    *p < 0x20 || *p == 0x7f ? '?' : *p, f); /* cli_finish() looks for errors */
}

int cli_put_json(const json_t *value)
{
	(void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	(void)fputc('\n', stdout);
	return CLI_OK;
}

int cli_write(const struct cli *cli, int fd, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		ssize_t written;
		int rc = httpc_wait(fd, POLLOUT, cli->signal_fd, CLOCK_NEVER);

		if (rc < 0)
			return rc;
		written = write(fd, at, n < ATOMIC_OUT ? n : ATOMIC_OUT);
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (written > 0) {
			at += written;
			n -= (size_t)written;
		}
	}
	return 0;
}

int cli_finish(int status)
{
	struct err err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	(void)err_sys(&err, errno, "cannot write");
	return cli_fail("stdout", &err);
}

void cli_format_age(double seconds, char *out, size_t size)
{
	unsigned long s = seconds > 0 ? (unsigned long)seconds : 0;

	if (s < 60)
		(void)snprintf(out, size, "%.1fs", seconds > 0 ? seconds : 0.0);
	else if (s < 3600)
		(void)snprintf(out, size, "%lum%02lus", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(out, size, "%luh%02lum", s / 3600, s / 60 % 60);
	else
		(void)snprintf(out, size, "%lud%02luh", s / 86400, s / 3600 % 24);
}

void cli_format_bytes(uint64_t bytes, char *out, size_t size)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(out, size, "%u", (unsigned int)bytes);
		return;
	}
	value /= 1024;
	while (value >= 1023.5 && unit + 1 < strlen(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out, size, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void cli_format_time(const char *time, char out[20])
{
	(void)snprintf(out, 20, "%.16s", time);
	if (strlen(out) > 10)
		out[10] = ' ';
}
