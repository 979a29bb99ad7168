/* files_tar: what requests for archives say in their query. sbx-worker; holds no state. */
#include "worker/files_tar.h"

#include <errno.h>
#include <string.h>

#include "wire/http.h"
#include "worker/conn.h"
#include "worker/files.h"

/* Takes out empty and "." components; there is no ".." in it. */
static void clean_path(struct files_tar_query *q)
{
	const char *from = q->path;
	char *to = q->path;

	while (*from) {
		size_t len = strcspn(from + 1, "/");
		bool dot = len == 1 && from[1] == '.';

		q->directory = len == 0 || dot;
		q->contents = dot;
		if (len > 0 && !dot) {
			memmove(to, from, len + 1);
			to += len + 1;
		}
		from += len + 1;
	}
	if (to == q->path) {
		*to++ = '/';
		q->directory = true;
		q->contents = true;
	}
	*to = '\0';
}

int files_tar_take_query(struct conn *c, const struct http_head *h, const char *flag, bool preset,
    struct files_tar_query *out)
{
	*out = (struct files_tar_query){.flag = preset};
	if (files_take_path(c, h, out->path) < 0)
		return -EINVAL;
	clean_path(out);
	return files_take_flag(c, h, flag, &out->flag) < 0 ? -EINVAL : 0;
}
