/* settings: what the configuration means to the pool and to drivers. Runs in sbxd; holds no state.
 */
#include <bsd/string.h>
#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "supervisor/api_spec.h"
#include "supervisor/sbxd.h"

#define CLOSE_GRACE (3 * NS_PER_S)

void sbxd_fill_site(const struct sbxd *s, struct ctl_site *site)
{
	*site = (struct ctl_site){.uid_base = s->uid == 0 ? s->config.namespace_uid_base : 0};
	(void)strlcpy(site->instance, s->instance, sizeof(site->instance));
	(void)strlcpy(site->driver, s->driver, sizeof(site->driver));
	(void)strlcpy(site->state_dir, s->state_dir, sizeof(site->state_dir));
	(void)strlcpy(site->runtime_dir, s->runtime_dir, sizeof(site->runtime_dir));
}

void sbxd_fill_rules(const struct sbxd *s, struct pool_rules *out)
{
	const struct config *c = &s->config;

	*out = (struct pool_rules){
	    .slots = s->seg.slot_count,
	    .replicas = c->replicas,
	    .policy = (enum replica_policy)c->replica_policy,
	    .burst_limit = c->burst_limit,
	    .max_boots = c->max_concurrent_boots,
	    .acquire_timeout = c->acquire_timeout_ns,
	    .idle_timeout = c->idle_timeout_ns,
	    .active_idle_timeout = c->active_idle_timeout_ns,
	    .check_skip = c->health_check_skip_ns,
	    .check_timeout = c->health_check_timeout_ns,
	    .boot_timeout = c->boot_timeout_ns,
	    .close_grace = CLOSE_GRACE,
	    .prewarm = c->prewarm,
	    .stock = s->spec,
	};
}

_Static_assert(
    (int)REPLICA_BURST == (int)CONFIG_POLICY_BURST, "the policies are in the same order");

int sbxd_fill_spec(struct sbxd *s)
{
	struct pool_spec spec = {
	    .memory_mib = s->config.memory_mib,
	    .cpus_milli = s->config.cpus_milli,
	    .disk_mib = s->config.disk_mib,
	    .pids_max = s->config.pids_max,
	};

	memcpy(spec.image, s->config.image, sizeof(spec.image));
	if (api_spec_digest(&spec) < 0)
		return -EIO;
	s->spec = spec;
	return 0;
}
