/* api_unsupported: what the BoxLite Box API has and no driver of ours can do. Runs in sbxd; holds
 * no state. */
#include <stdio.h>

#include "supervisor/access.h"
#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"

void api_unsupported(const struct sbxd *s, const struct client *c, const struct route_match *m,
    struct route_error *error)
{
	if (*m->id && !access_find_box(s, c, m->id)) {
		error->error = API_NOT_FOUND;
		(void)snprintf(error->text, sizeof(error->text), "box not found: %s", m->id);
		return;
	}
	error->error = API_UNSUPPORTED;
	(void)snprintf(error->text, sizeof(error->text), "%s: the driver %s cannot do that",
	    m->route->unsupported, s->driver);
}
