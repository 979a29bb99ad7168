/*
 * abi: the part of BoxLite's C interface that its test double speaks, in declarations of our own.
 *
 * Calls queue work and say so; what comes of it is told by a callback, on the thread that is in
 * boxlite_runtime_drain(). box_exec and the stdin calls alone are done when they return. The struct
 * of a box's information has grown over the versions, in the middle too: FAKE_INFO chooses which
 * one this library speaks (0: before the idle limits, 1: with them, 2: with a tail nobody knows).
 */
#ifndef SBXD_TESTS_FAKE_BOXLITE_ABI_H
#define SBXD_TESTS_FAKE_BOXLITE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef FAKE_INFO
#define FAKE_INFO 1
#endif

enum blx_code {
	BLX_OK,
	BLX_INTERNAL,
	BLX_NOT_FOUND,
	BLX_ALREADY_EXISTS,
	BLX_INVALID_STATE,
	BLX_INVALID_ARGUMENT,
	BLX_CONFIG,
	BLX_STORAGE,
	BLX_IMAGE,
	BLX_NETWORK,
	BLX_EXECUTION,
	BLX_STOPPED,
	BLX_ENGINE,
	BLX_UNSUPPORTED,
	BLX_DATABASE,
	BLX_PORTAL,
	BLX_RPC,
	BLX_RPC_TRANSPORT,
	BLX_METADATA,
	BLX_UNSUPPORTED_ENGINE,
	BLX_RESOURCE_EXHAUSTED,
	BLX_SESSION_REAPED,
	BLX_CODES
};

struct runtime;
struct box;
struct execution;
struct options;
struct rest_options;
struct credential;
struct images;

struct blx_error {
	enum blx_code code;
	char *message; /* boxlite_error_free() */
};

struct blx_registry {
	const char *host;
	int transport;
	int skip_verify;
	int search;
	const char *username;
	const char *password;
	const char *bearer_token;
};

struct blx_command {
	const char *command;
	const char *const *args;
	int argc;
	const char *const *env_pairs; /* key, value, key, value ... */
	int env_count;		      /* strings, not pairs */
	const char *workdir;
	const char *user;
	double timeout_secs;
	int tty;
};

struct blx_info {
	char *id;
	char *name;
	char *image;
	char *status;
	int running;
	int pid;
	int cpus;
	int memory_mib;
#if FAKE_INFO >= 1
	uint32_t auto_stop;
	uint32_t auto_delete;
	int auto_resume;
#endif
	int64_t created_at;
#if FAKE_INFO >= 1
	void *network; /* none: this library knows of no network */
#endif
#if FAKE_INFO >= 2
	char *labels[4];
	uint64_t reserved[5];
#endif
};

struct blx_info_list {
	struct blx_info *items;
	int count;
};

struct blx_metrics {
	double cpu_percent;
	int64_t memory_bytes;
	int commands_executed;
	int exec_errors;
	int64_t bytes_sent;
	int64_t bytes_received;
	int64_t create_duration_ms;
	int64_t boot_duration_ms;
	int64_t network_bytes_sent;
	int64_t network_bytes_received;
	int network_tcp_connections;
	int network_tcp_errors;
};

struct blx_pulled {
	char *reference;
	char *config_digest;
	int layer_count;
};

typedef void blx_done_fn(struct blx_error *err, void *user);
typedef void blx_box_fn(struct box *box, struct blx_error *err, void *user);
typedef void blx_box_made_fn(struct box *box, bool created, struct blx_error *err, void *user);
typedef void blx_info_fn(struct blx_info *info, struct blx_error *err, void *user);
typedef void blx_list_fn(struct blx_info_list *list, struct blx_error *err, void *user);
typedef void blx_metrics_fn(struct blx_metrics *metrics, struct blx_error *err, void *user);
typedef void blx_wait_fn(int code, struct blx_error *err, void *user);
typedef void blx_pulled_fn(struct blx_pulled *pulled, struct blx_error *err, void *user);
typedef void blx_exit_fn(int code, void *user);
typedef void blx_data_fn(const uint8_t *data, size_t len, void *user);

/* ---- runtimes ---- */

const char *boxlite_version(void);
enum blx_code boxlite_runtime_new(const char *home, const struct blx_registry *registries,
    int registry_count, struct runtime **out, struct blx_error *err);
enum blx_code boxlite_runtime_shutdown(
    struct runtime *rt, int timeout_s, blx_done_fn *cb, void *user, struct blx_error *err);
void boxlite_runtime_free(struct runtime *rt);
int boxlite_runtime_drain(struct runtime *rt, int timeout_ms, struct blx_error *err);
void boxlite_error_free(struct blx_error *err);
void boxlite_free_string(char *s);

enum blx_code boxlite_api_key_credential_new(
    const char *key, struct credential **out, struct blx_error *err);
void boxlite_credential_free(struct credential *c);
enum blx_code boxlite_rest_options_new(
    const char *url, struct rest_options **out, struct blx_error *err);
void boxlite_rest_options_set_credential(struct rest_options *o, const struct credential *c);
void boxlite_rest_options_set_path_prefix(struct rest_options *o, const char *prefix);
void boxlite_rest_options_free(struct rest_options *o);
enum blx_code boxlite_rest_runtime_new_with_options(
    const struct rest_options *o, struct runtime **out, struct blx_error *err);

enum blx_code boxlite_runtime_images(
    struct runtime *rt, struct images **out, struct blx_error *err);
enum blx_code boxlite_image_pull(struct images *images, const char *reference, blx_pulled_fn *cb,
    void *user, struct blx_error *err);
void boxlite_image_free(struct images *images);
void boxlite_free_image_pull_result(struct blx_pulled *pulled);

/* ---- what a box shall be ---- */

enum blx_code boxlite_options_new(const char *image, struct options **out, struct blx_error *err);
void boxlite_options_set_rootfs_path(struct options *o, const char *path);
void boxlite_options_set_name(struct options *o, const char *name);
void boxlite_options_set_cpus(struct options *o, int cpus);
void boxlite_options_set_memory(struct options *o, int mib);
void boxlite_options_set_disk_size_gb(struct options *o, int gb);
void boxlite_options_set_workdir(struct options *o, const char *dir);
void boxlite_options_add_env(struct options *o, const char *key, const char *value);
void boxlite_options_set_network_enabled(struct options *o);
void boxlite_options_set_network_disabled(struct options *o);
void boxlite_options_set_network_inbound_disabled(struct options *o);
void boxlite_options_set_auto_remove(struct options *o, int on);
void boxlite_options_set_auto_stop_interval(struct options *o, uint32_t seconds);
void boxlite_options_set_auto_delete_interval(struct options *o, uint32_t seconds);
void boxlite_options_set_auto_resume_enabled(struct options *o, int on);
void boxlite_options_set_detach(struct options *o, int on);
void boxlite_options_set_entrypoint(struct options *o, const char *const *args, int argc);
void boxlite_options_set_cmd(struct options *o, const char *const *args, int argc);
void boxlite_options_free(struct options *o);

/* ---- boxes ---- */

enum blx_code boxlite_create_box(
    struct runtime *rt, struct options *o, blx_box_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_get_or_create_box(
    struct runtime *rt, struct options *o, blx_box_made_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_get(
    struct runtime *rt, const char *id, blx_box_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_start_box(
    struct box *box, blx_done_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_stop_box(struct box *box, blx_done_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_remove(struct runtime *rt, const char *id, int force, blx_done_fn *cb,
    void *user, struct blx_error *err);
char *boxlite_box_id(struct box *box);
void boxlite_box_free(struct box *box);
enum blx_code boxlite_box_info(struct box *box, blx_info_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_get_info(
    struct runtime *rt, const char *id, blx_info_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_list_info(
    struct runtime *rt, blx_list_fn *cb, void *user, struct blx_error *err);
void boxlite_free_box_info(struct blx_info *info);
void boxlite_free_box_info_list(struct blx_info_list *list);
enum blx_code boxlite_box_metrics(
    struct box *box, blx_metrics_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_copy_into(struct box *box, const char *src, const char *dst, blx_done_fn *cb,
    void *user, struct blx_error *err);
enum blx_code boxlite_copy_out(struct box *box, const char *src, const char *dst, blx_done_fn *cb,
    void *user, struct blx_error *err);

/* ---- executions ---- */

enum blx_code boxlite_box_exec(
    struct box *box, const struct blx_command *cmd, struct execution **out, struct blx_error *err);
enum blx_code boxlite_execution_on_stdout(
    struct execution *x, blx_data_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_on_stderr(
    struct execution *x, blx_data_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_on_exit(
    struct execution *x, blx_exit_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_stdin_write(
    struct execution *x, const uint8_t *data, size_t len, struct blx_error *err);
enum blx_code boxlite_execution_stdin_close(struct execution *x, struct blx_error *err);
enum blx_code boxlite_execution_wait(
    struct execution *x, blx_wait_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_kill(
    struct execution *x, blx_done_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_signal(
    struct execution *x, int sig, blx_done_fn *cb, void *user, struct blx_error *err);
enum blx_code boxlite_execution_tty_resize(
    struct execution *x, int rows, int cols, blx_done_fn *cb, void *user, struct blx_error *err);
void boxlite_execution_free(struct execution *x);

#endif
