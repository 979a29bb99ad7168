/* api_config: GET /v1/config: what this service does by default, can do, and allows. Needs no
 * token. Runs in sbxd; holds no state. */
#include "lib/clock.h"
#include "supervisor/client.h"
#include "supervisor/make_request.h"
#include "supervisor/routes.h"
#include "supervisor/sbxd.h"
#include "wire/json.h"
#include "wire/limits.h"

#define CONFIG_JSON_MAX 8192U
#define CONFIG_SECURITY "standard" /* a box is as closed as it can be: there is one way */
#define MIB_PER_GIB 1024U

static uint32_t whole(uint32_t n, uint32_t unit)
{
	return n / unit + (n % unit != 0);
}

static void put_defaults(struct json_out *j, const struct config *c)
{
	json_object_begin(j, "defaults");
	json_put_uint(j, "cpus", c->cpus_milli ? whole(c->cpus_milli, 1000) : 1);
	json_put_uint(j, "memory_mib", c->memory_mib);
	json_put_uint(j, "disk_size_gb", whole(c->disk_mib, MIB_PER_GIB));
	json_put_string(j, "security_preset", CONFIG_SECURITY);
	json_put_uint(j, "auto_delete", 0);
	json_object_end(j);
}

/* What clients may ask for and do not get. */
static void put_overrides(struct json_out *j)
{
	json_object_begin(j, "overrides");
	json_put_string(j, "network", "none");
	json_object_end(j);
}

static void put_abilities(struct json_out *j)
{
	static const struct {
		const char *name;
		bool can;
	} abilities[] = {
	    {"linux_capabilities_enabled", false},
	    {"tty_enabled", true},
	    {"streaming_enabled", true},
	    {"snapshots_enabled", false},
	    {"clone_enabled", false},
	    {"export_enabled", false},
	    {"import_enabled", false},
	};

	for (size_t i = 0; i < sizeof(abilities) / sizeof(abilities[0]); i++)
		json_put_bool(j, abilities[i].name, abilities[i].can);
}

static void put_capabilities(struct json_out *j, const struct config *c)
{
	json_object_begin(j, "capabilities");
	put_abilities(j);
	json_put_uint(j, "max_cpus", MAKE_CPUS_MAX);
	json_put_uint(j, "max_memory_mib", MAKE_MEMORY_MIB_MAX);
	json_put_uint(j, "max_disk_size_gb", MAKE_DISK_GB_MAX);
	json_put_uint(j, "max_boxes_per_path_prefix", c->max_boxes);
	json_put_uint(j, "max_concurrent_executions", c->limits.box_executions);
	json_put_uint(j, "file_transfer_max_bytes", c->limits.file_bytes);
	json_put_uint(j, "exec_timeout_max_seconds", LIMIT_COMMAND_SECONDS);
	json_array_begin(j, "supported_security_presets");
	json_put_string(j, NULL, CONFIG_SECURITY);
	json_array_end(j);
	json_put_string(j, "idempotency_key_lifetime", "PT24H");
	json_object_end(j);
}

/* Ours, under the names that the configuration has for them. */
static void put_limits(struct json_out *j, const struct config_limits *l)
{
	const struct {
		const char *name;
		uint64_t value;
	} limits[] = {
	    {"head_bytes", l->head_bytes},
	    {"body_bytes", l->body_bytes},
	    {"json_depth", l->json_depth},
	    {"box_connections", l->box_connections},
	    {"event_streams", l->event_streams},
	    {"run_body_bytes", l->run_body_bytes},
	    {"exec_body_bytes", l->exec_body_bytes},
	    {"run_output_bytes", l->run_output_bytes},
	    {"file_bytes", l->file_bytes},
	    {"box_executions", l->box_executions},
	};
	const struct {
		const char *name;
		uint64_t ns;
	} times[] = {
	    {"connection_idle_timeout", l->connection_idle_ns},
	    {"execution_detach_grace", l->execution_detach_grace_ns},
	    {"execution_keep_seconds", l->execution_keep_ns},
	    {"operation_stall_timeout", l->operation_stall_ns},
	};

	json_object_begin(j, "limits");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		json_put_uint(j, limits[i].name, limits[i].value);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		json_put_double(j, times[i].name, (double)times[i].ns / (double)NS_PER_S);
	json_object_end(j);
}

void api_config(struct sbxd *s, struct client *c, const struct route_call *call)
{
	struct json_out j;
	struct buf out;

	(void)call;
	buf_init(&out, CONFIG_JSON_MAX);
	json_out_init(&j, &out);
	json_object_begin(&j, NULL);
	put_defaults(&j, &s->config);
	put_overrides(&j);
	put_capabilities(&j, &s->config);
	put_limits(&j, &s->config.limits);
	json_object_end(&j);
	client_reply_out(c, 200, &j);
	buf_free(&out);
}
