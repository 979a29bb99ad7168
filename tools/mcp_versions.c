/* mcp_versions: the revisions of the protocol that are served. sbx-mcp; holds no state. */
#include <string.h>

#include "tools/mcp.h"

/* To this server 2025-06-18 and 2025-11-25 are the same. Those before have no structured content.
 */
const struct mcp_version mcp_versions[] = {
    {"2026-07-28", true},
    {"2025-11-25", false},
    {"2025-06-18", false},
    {NULL, false},
};

const struct mcp_version *mcp_version_find(const char *name)
{
	for (const struct mcp_version *v = mcp_versions; v->name; v++) {
		if (strcmp(v->name, name) == 0)
			return v;
	}
	return NULL;
}

const char *mcp_version_handshake(void)
{
	const struct mcp_version *v = mcp_versions;

	while (v->modern)
		v++;
	return v->name;
}
