/*
 * config: every setting of sbxd, from flags, the environment, one YAML file and defaults, in that
 * order of strength.
 *
 * Read once at start, and again (into a second struct) on SIGHUP. A new key is one member here and
 * one row in config_table.c. Times are nanoseconds; 0 disables where the table allows 0.
 */
#ifndef SBXD_SUPERVISOR_CONFIG_H
#define SBXD_SUPERVISOR_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"

#define CONFIG_PATH_LEN 256
#define CONFIG_TEXT_LEN 256
#define CONFIG_MEMORY_MIB_MAX (1U << 20) /* what a box can be given at most */
#define CONFIG_CPUS_MAX 1024U
#define CONFIG_DISK_MIB_MAX (1U << 24)
#define CONFIG_EXECUTIONS_MAX 192U    /* leaves the guest channels for everything else */
#define CONFIG_ENVIRONMENT_MAX 65536U /* bytes of "K=V\0": fits the tail of a control message */

enum config_policy {
	CONFIG_POLICY_SOFT,
	CONFIG_POLICY_REJECT,
	CONFIG_POLICY_WAIT,
	CONFIG_POLICY_BURST,
	CONFIG_POLICIES,
};

enum config_network {
	CONFIG_NETWORK_NONE,
	CONFIG_NETWORK_USER, /* parsed, but refused by config_load(): it comes later */
	CONFIG_NETWORKS,
};

enum config_accel {
	CONFIG_ACCEL_AUTO,
	CONFIG_ACCEL_KVM,
	CONFIG_ACCEL_TCG,
	CONFIG_ACCELS,
};

/* An address to listen on. */
struct config_listen {
	bool set;
	bool v6;
	uint16_t port;	  /* host byte order; 0: one that is free */
	uint8_t addr[16]; /* network byte order; the first 4 for IPv4 */
};

/* A map of variables as one block. NULL data when empty. */
struct config_environment {
	char *data; /* owned: "K=V\0K=V\0", in the order of the file */
	size_t len; /* bytes, the last NUL included */
	uint32_t count;
};

/* What clients may use; what each means: wire/limits.h. */
struct config_limits {
	uint32_t head_bytes;
	uint32_t body_bytes;
	uint32_t json_depth;
	uint32_t connections; /* 0: as many as there are descriptors for */
	uint32_t tcp_connections;
	uint32_t box_connections;
	uint32_t event_streams;
	uint32_t run_body_bytes;
	uint32_t exec_body_bytes;
	uint32_t run_output_bytes;
	uint64_t file_bytes;
	uint64_t connection_idle_ns; /* 0: for ever */
	uint32_t box_executions;
	uint64_t execution_detach_grace_ns; /* 0: never ended for want of a client */
	uint64_t execution_keep_ns;
	uint64_t operation_stall_ns; /* 0: for ever */
};

struct config {
	char driver[16]; /* auto, boxlite, qemu, namespace */
	char image[128];
	uint32_t memory_mib;
	uint32_t cpus_milli; /* thousandths of a cpu; 0: no limit */
	uint32_t disk_mib;
	uint32_t pids_max;
	struct config_environment environment;

	uint32_t replicas;
	uint32_t replica_policy; /* enum config_policy */
	uint32_t burst_limit;
	uint32_t prewarm;
	uint32_t max_concurrent_boots;
	uint32_t max_boxes;
	uint64_t acquire_timeout_ns;
	uint64_t idle_timeout_ns;	 /* 0: never */
	uint64_t active_idle_timeout_ns; /* 0: never */
	uint64_t health_check_skip_ns;	 /* 0: always check */
	uint64_t health_check_timeout_ns;
	uint64_t boot_timeout_ns;
	uint64_t orphan_grace_ns;

	uint32_t network;		  /* enum config_network */
	char admin_group[64];		  /* "": none but root */
	struct config_listen listen_tcp;  /* given only together with token_file */
	uint32_t listen_tcp_public;	  /* 1: it need not be a loopback address */
	char token_file[CONFIG_PATH_LEN]; /* absolute; "": none */

	struct config_limits limits;

	uint64_t images_cache_mib;
	uint64_t images_pull_timeout_ns;
	char images_auth_file[CONFIG_PATH_LEN];		  /* "": none */
	char images_insecure_registries[CONFIG_TEXT_LEN]; /* with commas between */

	uint32_t namespace_uid_base; /* host uids of boxes begin here, when run as root */

	char qemu_binary[CONFIG_PATH_LEN]; /* "": found in PATH */
	char qemu_kernel[CONFIG_PATH_LEN];
	char qemu_modules[CONFIG_PATH_LEN]; /* "": those of the kernel's package */
	uint32_t qemu_accel;		    /* enum config_accel */
	char qemu_cpu[CONFIG_TEXT_LEN];	    /* "": the host's, or all that can be emulated */
	uint32_t qemu_templates;	    /* 0: each box boots */

	char boxlite_library[CONFIG_PATH_LEN]; /* "": the loader's search path */
	char boxlite_home[CONFIG_PATH_LEN];    /* "": in the state directory */
	char boxlite_registries[CONFIG_TEXT_LEN];
	uint32_t boxlite_network;	   /* 1: enabled */
	uint32_t boxlite_detach;	   /* 1: a box outlives its worker */
	char boxlite_url[CONFIG_TEXT_LEN]; /* "": boxes of this host */
	char boxlite_api_key[CONFIG_TEXT_LEN];
	char boxlite_path_prefix[CONFIG_TEXT_LEN];
};

/* A value from the command line. All pointers are the caller's. */
struct config_override {
	const char *flag; /* "--driver", for messages */
	const char *key;  /* "driver" */
	const char *value;
};

/* Where settings come from. All pointers are the caller's. */
struct config_sources {
	const char *path;	  /* --config; NULL: SBXD_CONFIG from env, else default_path */
	const char *default_path; /* may be NULL; need not exist */
	char *const *env;	  /* environ; NULL is empty */
	const struct config_override *overrides;
	size_t override_count;
};

/*
 * Reads and checks all settings. 0, or -errno with *err, which begins with the place ("FILE:LINE",
 * "SBXD_REPLICAS" or "--driver") and names the key, the value and what is allowed. *out is
 * untouched on failure, and the caller's to config_free() on success.
 */
int config_load(const struct config_sources *src, struct config *out, struct err *err);

void config_free(struct config *c);

/* Appends the settings as YAML that config_load() reads back to the same. 0, -ENOBUFS, -ENOMEM. */
int config_print(const struct config *c, struct buf *out) __attribute__((warn_unused_result));

/*
 * Appends what the drivers' own sections say, as drivers/driver.h has it in struct driver_options:
 * "boxlite.url=...\0", what is empty left out. Secrets too. 0, -ENOBUFS, -ENOMEM.
 */
int config_options(const struct config *c, struct buf *out) __attribute__((warn_unused_result));

/* Called for each key whose value differs; applied says whether it takes effect without a restart.
 */
typedef void config_change_fn(void *ctx, const char *key, bool applied);

/*
 * Takes over from *fresh every reloadable value that differs; the others stay. *fresh remains the
 * caller's to free. 0, or -errno with *err and *current as it was.
 */
int config_reload(struct config *current, const struct config *fresh, config_change_fn *fn,
    void *ctx, struct err *err);

/* Nothing that is sent to it leaves the host. */
bool config_listen_is_loopback(const struct config_listen *l);

/* Appends "127.0.0.1:8080" or "[::1]:8080"; l is set. 0 or -errno. */
int config_listen_print(const struct config_listen *l, struct buf *out)
    __attribute__((warn_unused_result));

/* "soft" etc.; "?" when out of range. */
const char *config_policy_name(uint32_t policy);

#endif
