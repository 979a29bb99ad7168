/* config_table: the keys of the configuration, one row each. sbxd, at start and on SIGHUP;
 * constant.
 */
#include "supervisor/config_table.h"

#include <string.h>
#include <strings.h>

#include "lib/clock.h"
#include "shm/layout.h"
#include "wire/http.h"
#include "wire/json.h"
#include "wire/limits.h"

#define AT(member) offsetof(struct config, member)
#define SIZE(member) sizeof(((struct config *)0)->member)
#define DAY (86400 * NS_PER_S)
#define YEAR (366 * DAY)
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define TEXT_OF(number) #number
#define DEFAULT(number) TEXT_OF(number)

static const char *const driver_names[] = {"auto", "boxlite", "qemu", "namespace", NULL};

static const char *const policy_names[] = {
    [CONFIG_POLICY_SOFT] = "soft",
    [CONFIG_POLICY_REJECT] = "reject",
    [CONFIG_POLICY_WAIT] = "wait",
    [CONFIG_POLICY_BURST] = "burst",
    [CONFIG_POLICIES] = NULL,
};

static const char *const network_names[] = {
    [CONFIG_NETWORK_NONE] = "none",
    [CONFIG_NETWORK_USER] = "user",
    [CONFIG_NETWORKS] = NULL,
};

static const char *const accel_names[] = {
    [CONFIG_ACCEL_AUTO] = "auto",
    [CONFIG_ACCEL_KVM] = "kvm",
    [CONFIG_ACCEL_TCG] = "tcg",
    [CONFIG_ACCELS] = NULL,
};

static const char *const switch_names[] = {"false", "true", NULL};
static const char *const ability_names[] = {"disabled", "enabled", NULL};

/* Reloadable: what only decides about later boxes and later decisions. */
const struct config_key config_keys[CONFIG_KEYS] = {
    {"driver", CONFIG_WORD, AT(driver), 1, SIZE(driver), "auto", driver_names, false},
    {"image", CONFIG_TEXT, AT(image), 1, SIZE(image), "host", NULL, false},
    {"memory_mib", CONFIG_UINT, AT(memory_mib), 16, CONFIG_MEMORY_MIB_MAX, "512", NULL, true},
    {"cpus", CONFIG_MILLI, AT(cpus_milli), 0, CONFIG_CPUS_MAX * 1000, "1", NULL, true},
    {"disk_mib", CONFIG_UINT, AT(disk_mib), 1, CONFIG_DISK_MIB_MAX, "512", NULL, true},
    {"pids_max", CONFIG_UINT, AT(pids_max), 16, 1U << 22, "512", NULL, true},
    {"environment", CONFIG_ENVIRONMENT, AT(environment), 0, CONFIG_ENVIRONMENT_MAX, NULL, NULL,
	true},
    {"replicas", CONFIG_UINT, AT(replicas), 1, SHM_MAX_SLOTS, "3", NULL, true},
    {"replica_policy", CONFIG_ENUM, AT(replica_policy), 0, 0, "soft", policy_names, true},
    {"burst_limit", CONFIG_UINT, AT(burst_limit), 0, SHM_MAX_SLOTS, "2", NULL, true},
    {"acquire_timeout", CONFIG_SECONDS, AT(acquire_timeout_ns), 0, DAY, "60", NULL, true},
    {"prewarm", CONFIG_UINT, AT(prewarm), 0, SHM_MAX_SLOTS, "0", NULL, true},
    {"idle_timeout", CONFIG_SECONDS, AT(idle_timeout_ns), 0, YEAR, "600", NULL, true},
    {"active_idle_timeout", CONFIG_SECONDS, AT(active_idle_timeout_ns), 0, YEAR, "0", NULL, true},
    {"health_check_skip_seconds", CONFIG_SECONDS, AT(health_check_skip_ns), 0, DAY, "0", NULL,
	true},
    {"health_check_timeout", CONFIG_SECONDS, AT(health_check_timeout_ns), NS_PER_MS, 600 * NS_PER_S,
	"5", NULL, true},
    {"boot_timeout", CONFIG_SECONDS, AT(boot_timeout_ns), NS_PER_MS, DAY, "30", NULL, true},
    {"max_concurrent_boots", CONFIG_UINT, AT(max_concurrent_boots), 1, 1024, "4", NULL, false},
    {"orphan_grace", CONFIG_SECONDS, AT(orphan_grace_ns), 0, DAY, "60", NULL, true},
    {"max_boxes", CONFIG_UINT, AT(max_boxes), 1, SHM_MAX_SLOTS, "1024", NULL, false},
    {"network", CONFIG_ENUM, AT(network), 0, 0, "none", network_names, false},
    {"admin_group", CONFIG_TEXT, AT(admin_group), 0, SIZE(admin_group), "", NULL, false},
    {"listen_tcp", CONFIG_LISTEN, AT(listen_tcp), 0, 0, "", NULL, false},
    {"listen_tcp_public", CONFIG_ENUM, AT(listen_tcp_public), 0, 0, "false", switch_names, false},
    {"token_file", CONFIG_FILE, AT(token_file), 0, SIZE(token_file), "", NULL, false},

    {"limits.head_bytes", CONFIG_UINT, AT(limits.head_bytes), KIB, HTTP_HEAD_LIMIT,
	DEFAULT(LIMIT_HEAD_BYTES), NULL, true},
    {"limits.body_bytes", CONFIG_UINT, AT(limits.body_bytes), KIB, 16 * MIB,
	DEFAULT(LIMIT_BODY_BYTES), NULL, true},
    {"limits.json_depth", CONFIG_UINT, AT(limits.json_depth), 8, JSON_DEPTH_MAX,
	DEFAULT(LIMIT_JSON_DEPTH), NULL, true},
    {"limits.connections", CONFIG_UINT, AT(limits.connections), 0, 65536,
	DEFAULT(LIMIT_CONNECTIONS), NULL, false},
    {"limits.tcp_connections", CONFIG_UINT, AT(limits.tcp_connections), 1, 65536,
	DEFAULT(LIMIT_TCP_CONNECTIONS), NULL, true},
    {"limits.connection_idle_timeout", CONFIG_SECONDS, AT(limits.connection_idle_ns), 0, 30 * DAY,
	DEFAULT(LIMIT_IDLE_SECONDS), NULL, true},
    {"limits.box_connections", CONFIG_UINT, AT(limits.box_connections), 1, SHM_CONNS,
	DEFAULT(LIMIT_BOX_CONNECTIONS), NULL, true},
    {"limits.event_streams", CONFIG_UINT, AT(limits.event_streams), 1, 1024,
	DEFAULT(LIMIT_EVENT_STREAMS), NULL, true},
    {"limits.run_body_bytes", CONFIG_UINT, AT(limits.run_body_bytes), KIB, 256 * MIB,
	DEFAULT(LIMIT_RUN_BODY_BYTES), NULL, true},
    {"limits.exec_body_bytes", CONFIG_UINT, AT(limits.exec_body_bytes), KIB, 256 * MIB,
	DEFAULT(LIMIT_EXEC_BODY_BYTES), NULL, true},
    {"limits.run_output_bytes", CONFIG_UINT, AT(limits.run_output_bytes), KIB, 256 * MIB,
	DEFAULT(LIMIT_RUN_OUTPUT_BYTES), NULL, true},
    {"limits.file_bytes", CONFIG_SIZE, AT(limits.file_bytes), 1, MIB *MIB,
	DEFAULT(LIMIT_FILE_BYTES), NULL, true},
    {"limits.box_executions", CONFIG_UINT, AT(limits.box_executions), 1, CONFIG_EXECUTIONS_MAX,
	DEFAULT(LIMIT_BOX_EXECUTIONS), NULL, true},
    {"limits.execution_detach_grace", CONFIG_SECONDS, AT(limits.execution_detach_grace_ns), 0, DAY,
	DEFAULT(LIMIT_EXECUTION_SECONDS), NULL, true},
    {"limits.execution_keep_seconds", CONFIG_SECONDS, AT(limits.execution_keep_ns), 0, DAY,
	DEFAULT(LIMIT_EXECUTION_SECONDS), NULL, true},
    {"limits.operation_stall_timeout", CONFIG_SECONDS, AT(limits.operation_stall_ns), 0, DAY,
	DEFAULT(LIMIT_STALL_SECONDS), NULL, true},

    {"images.cache_mib", CONFIG_SIZE, AT(images_cache_mib), 1, MIB *MIB, "16384", NULL, false},
    {"images.pull_timeout", CONFIG_SECONDS, AT(images_pull_timeout_ns), NS_PER_S, DAY, "600", NULL,
	false},
    {"images.auth_file", CONFIG_FILE, AT(images_auth_file), 0, SIZE(images_auth_file), "", NULL,
	false},
    {"images.insecure_registries", CONFIG_TEXT, AT(images_insecure_registries), 0,
	SIZE(images_insecure_registries), "", NULL, false},

    /* Above the ranges that login.defs gives to users and, with max_boxes at its greatest, up to
     * the end of what systemd leaves to containers. */
    {"namespace.uid_base", CONFIG_UINT, AT(namespace_uid_base), 65536, 0xfffeffffU, "805306368",
	NULL, false},

    {"qemu.binary", CONFIG_FILE, AT(qemu_binary), 0, SIZE(qemu_binary), "", NULL, false},
    {"qemu.kernel", CONFIG_FILE, AT(qemu_kernel), 0, SIZE(qemu_kernel), "", NULL, false},
    {"qemu.modules", CONFIG_FILE, AT(qemu_modules), 0, SIZE(qemu_modules), "", NULL, false},
    {"qemu.accel", CONFIG_ENUM, AT(qemu_accel), 0, 0, "auto", accel_names, false},
    {"qemu.cpu", CONFIG_TEXT, AT(qemu_cpu), 0, SIZE(qemu_cpu), "", NULL, false},
    {"qemu.templates", CONFIG_ENUM, AT(qemu_templates), 0, 0, "true", switch_names, false},

    {"boxlite.library", CONFIG_FILE, AT(boxlite_library), 0, SIZE(boxlite_library), "", NULL,
	false},
    {"boxlite.home", CONFIG_FILE, AT(boxlite_home), 0, SIZE(boxlite_home), "", NULL, false},
    {"boxlite.registries", CONFIG_TEXT, AT(boxlite_registries), 0, SIZE(boxlite_registries), "",
	NULL, false},
    {"boxlite.network", CONFIG_ENUM, AT(boxlite_network), 0, 0, "disabled", ability_names, false},
    {"boxlite.detach", CONFIG_ENUM, AT(boxlite_detach), 0, 0, "false", switch_names, false},
    {"boxlite.url", CONFIG_TEXT, AT(boxlite_url), 0, SIZE(boxlite_url), "", NULL, false},
    {"boxlite.api_key", CONFIG_SECRET, AT(boxlite_api_key), 0, SIZE(boxlite_api_key), "", NULL,
	false},
    {"boxlite.path_prefix", CONFIG_TEXT, AT(boxlite_path_prefix), 0, SIZE(boxlite_path_prefix), "",
	NULL, false},
};

_Static_assert(SIZE(image) <= SHM_IMAGE_LEN, "an image fits its slot");

static const char *const sections[] = {"limits", "images", "namespace", "qemu", "boxlite"};

/* So that the sandbox: block of a DeerFlow configuration can be given as it is. Not among them is
 * what would change a box and that we do not do, as `mounts`. */
static const char *const ignored[] = {
    "allow_host_bash",
    "api_key",
    "auto_start",
    "base_url",
    "bash_command_timeout",
    "bash_output_max_chars",
    "container_prefix",
    "ls_output_max_chars",
    "overflow_policy",
    "ownership",
    "port",
    "provisioner_api_key",
    "provisioner_url",
    "read_file_output_max_chars",
    "thread_data_mounts",
    "use",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The part of a row's name below section, or NULL when it is not in that section. */
static const char *name_below(const struct config_key *key, const char *section)
{
	size_t len = strlen(section);
	const char *dot = strchr(key->name, '.');

	if (len == 0)
		return dot ? NULL : key->name;
	if (!dot || (size_t)(dot - key->name) != len || memcmp(key->name, section, len) != 0)
		return NULL;
	return dot + 1;
}

int config_key_find(const char *section, const char *name)
{
	for (int i = 0; i < CONFIG_KEYS; i++) {
		const char *below = name_below(&config_keys[i], section);

		if (below && strcmp(below, name) == 0)
			return i;
	}
	return -1;
}

bool config_section_known(const char *name)
{
	for (size_t i = 0; i < COUNT(sections); i++) {
		if (strcmp(sections[i], name) == 0)
			return true;
	}
	return false;
}

bool config_key_ignored(const char *name)
{
	for (size_t i = 0; i < COUNT(ignored); i++) {
		if (strcmp(ignored[i], name) == 0)
			return true;
	}
	return false;
}

#define GUESS_LEN 32

/* Edits (insert, delete, replace) that make b of a; case does not count. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[GUESS_LEN + 1];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned int corner = row[0];

		row[0] = (unsigned int)i + 1;
		for (size_t j = 1; j <= n; j++) {
			unsigned int best = corner + (strncasecmp(&a[i], &b[j - 1], 1) != 0);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

const char *config_key_guess(const char *section, const char *name)
{
	const char *best = NULL;
	unsigned int least = 3; /* more edits than two are no typing error */

	if (strlen(name) > GUESS_LEN)
		return NULL;
	for (int i = 0; i < CONFIG_KEYS; i++) {
		const char *below = name_below(&config_keys[i], section);
		unsigned int d;

		if (!below || strlen(below) > GUESS_LEN)
			continue;
		d = distance(name, below);
		if (d < least && d < strlen(name)) {
			least = d;
			best = below;
		}
	}
	return best;
}

const char *config_policy_name(uint32_t policy)
{
	return policy < CONFIG_POLICIES ? policy_names[policy] : "?";
}
