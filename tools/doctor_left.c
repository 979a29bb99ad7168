/* doctor_left: what instances left that have no sbxd. Reads only. */
#include <unistd.h>

#include "tools/doctor.h"
#include "tools/gc.h"

static void say_instance(struct doctor *d, const struct gc_instance *i)
{
	const char *what = i->has_table ? i->paths.shm_name : i->name;
	const char *gc = "sbxctl gc removes all of it; or start sbxd with that instance again";
	char fix[128];

	switch (i->verdict) {
	case GC_LIVE:
		doctor_say(d, DOCTOR_FINE, NULL, "instance %s of uid %u: %s", i->name,
		    (unsigned int)i->uid, i->why);
		return;
	case GC_WAITING:
		(void)snprintf(fix, sizeof(fix),
		    "start sbxd --instance %s within its orphan_grace: it takes them over",
		    i->name);
		doctor_say(d, DOCTOR_WRONG, fix, "%s: its sbxd is gone, and %s", i->paths.shm_name,
		    i->why);
		return;
	case GC_DEAD:
		doctor_say(d, DOCTOR_WRONG, gc, "%s: its sbxd is gone", what);
		return;
	case GC_UNKNOWN:
	case GC_VERDICTS:
		doctor_say(d, DOCTOR_NOTE, "look at it as root", "%s: %s", what, i->why);
		return;
	}
}

void doctor_left(struct doctor *d)
{
	const struct gc_query q = {.uid = geteuid(), .env = d->cli->env};
	struct gc_list list;

	if (gc_find(&q, &list) < 0) {
		doctor_say(d, DOCTOR_NOTE, "free some memory", "no memory to look at them");
		return;
	}
	for (size_t n = 0; n < list.count; n++)
		say_instance(d, &list.items[n]);
	if (list.count == 0)
		doctor_say(d, DOCTOR_FINE, NULL, "none");
	gc_free(&list);
}
