/* mcp: the state of sbx-mcp. When it dies its connections close; the service ends its commands and
 * takes its box back. */
#include "tools/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "lib/fd.h"
#include "tools/mcp_call.h"

#define OUT_MAX (256U * 1024U * 1024U) /* MCP_CALLS_MAX answers of the largest kind, and more */

struct mcp *mcp_create(const struct mcp_options *o, struct loop *l, struct err *err)
{
	struct mcp *m = calloc(1, sizeof(*m));

	if (!m) {
		(void)err_sys(err, ENOMEM, "sbx-mcp");
		return NULL;
	}
	m->o = o;
	m->loop = l;
	buf_init(&m->out, OUT_MAX);
	for (size_t i = 0; i < o->host_dir_count; i++)
		m->host_fds[i] = -1;
	for (size_t i = 0; i < o->host_dir_count; i++) {
		m->host_fds[i] = open(o->host_dirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (m->host_fds[i] < 0) {
			(void)err_sys(err, errno, "--host-dir %.150s", o->host_dirs[i]);
			mcp_free(m);
			return NULL;
		}
	}
	return m;
}

void mcp_free(struct mcp *m)
{
	if (!m)
		return;
	mcp_calls_drop(m, false);
	mcp_box_drop(m);
	mcp_scope_drop(m);
	for (size_t i = 0; i < m->o->host_dir_count; i++)
		fd_close(&m->host_fds[i]);
	buf_free(&m->out);
	free(m);
}
