/*
 * take: a box that is there, and whose worker died. sbx-boxlite; the loop. If we die here, it is as
 * it was.
 */
#include <errno.h>

#include "drivers/boxlite/program/program.h"
#include "lib/fault.h"

/* Call thread. */
static int post_look(struct ask *a, struct blx_error *error)
{
	return a->p->api.get_info(a->p->runtime, a->text, ask_on_info, ask_ticket(a), error);
}

/* Call thread. */
static int post_get(struct ask *a, struct blx_error *error)
{
	return a->p->api.get(a->p->runtime, a->text, ask_on_box, ask_ticket(a), error);
}

/* One that does not run would be booted by whatever is asked of it: it is none to be saved. */
int take_box(struct program *p, const char *name, struct answer *got, struct err *err)
{
	struct ask look = {.what = "look for the box", .post = post_look, .later = true};
	struct ask get = {.what = "take over the box", .post = post_get, .later = true};
	int rc;

	if (!p->api.get)
		return err_set(err, EOPNOTSUPP, "this BoxLite library cannot take over a box");
	look.text = get.text = name;
	rc = ask(p, &look, got, err);
	if (rc == 0 && !got->flag)
		rc = err_set(err, ESHUTDOWN, "take over the box: it does not run any more");
	if (rc == 0)
		rc = ask(p, &get, got, err);
	if (rc == 0 && !got->handle)
		rc = err_set(err, EIO, "take over the box: BoxLite says it did, and has not");
	if (rc < 0)
		return rc;
	p->box = got->handle;
	FAULT_POINT("boxlite.taken");
	return 0;
}
