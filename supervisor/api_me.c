/* api_me: GET /v1/me: who the client is to us. Runs in sbxd; holds no state. */
#include <pwd.h>
#include <stdio.h>

#include "supervisor/client.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"

#define ME_JSON_MAX 8192U
#define ME_LINE_MAX 1024U
#define ME_PASSWD "/etc/passwd"

/* Whose uid it is, by the host's own list: other sources of users may take their time, and sbxd has
 * none. NULL when it is not there; line is where it stands. */
static const char *name_of(uid_t uid, char line[ME_LINE_MAX])
{
	FILE *f = fopen(ME_PASSWD, "re");
	const char *name = NULL;
	struct passwd entry;
	struct passwd *p = NULL;

	while (f && !name && fgetpwent_r(f, &entry, line, ME_LINE_MAX, &p) == 0) {
		if (p->pw_uid == uid)
			name = p->pw_name;
	}
	if (f)
		(void)fclose(f); /* it was only read */
	return name;
}

static void put_scopes(struct json_out *j, bool admin)
{
	static const char *const scopes[] = {
	    "boxes:read", "boxes:write", "images:read", "metrics:read"};

	json_array_begin(j, "scopes");
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		json_put_string(j, NULL, scopes[i]);
	if (admin)
		json_put_string(j, NULL, "admin");
	json_array_end(j);
}

void api_me(struct sbxd *s, struct client *c, const struct route_call *call)
{
	char sub[16];
	char line[ME_LINE_MAX];
	const char *name = name_of(client_uid(c), line);
	struct json_out j;
	struct buf out;

	(void)s;
	(void)call;
	(void)snprintf(sub, sizeof(sub), "%u", (unsigned int)client_uid(c));
	buf_init(&out, ME_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	json_put_string(&j, "sub", sub);
	json_put_string(&j, "principal_type", client_is_by_token(c) ? "service_account" : "user");
	json_put_string(&j, "display_name", name ? name : sub);
	json_put_null(&j, "path_prefix");
	put_scopes(&j, client_is_admin(c));
	json_put_null(&j, "expires_at");
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}
