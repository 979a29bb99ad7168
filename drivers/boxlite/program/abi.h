/*
 * abi: BoxLite's C interface as sbx-boxlite uses it: our own declarations, so that no header of
 * BoxLite's is needed to build, and the symbols found at run time.
 *
 * It is the post-and-drain interface: calls queue work, and callbacks run in blx_drain(). Of
 * structs that the library returns only the beginning is declared that is the same in each version
 * from BLX_VERSION_MIN to BLX_VERSION_END; what follows differs. So arrays of them cannot be
 * indexed: info_next() finds the next element. Enumerations are ints.
 */
#ifndef SBXD_DRIVERS_BOXLITE_PROGRAM_ABI_H
#define SBXD_DRIVERS_BOXLITE_PROGRAM_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* From 0.9.0 up to, and not with, 0.12.0. */
#define BLX_VERSION_MIN 9U
#define BLX_VERSION_END 12U
#define BLX_LIBRARY "libboxlite.so"
#define BLX_VERSION_LEN 32

/* The library's own; opaque. */
struct blx_runtime;
struct blx_box;
struct blx_options;
struct blx_exec;
struct blx_credential;
struct blx_rest;
struct blx_images;
struct blx_pulled;

struct blx_error {
	int code;
	char *message; /* error_free(); in a callback the library's */
};

struct blx_registry {
	const char *host;
	int transport; /* 0: https, 1: http */
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
	const char *const *env_pairs;
	int env_count;
	const char *workdir;
	const char *user;
	double timeout_secs;
	int tty;
};

/* Only what all versions share; never an array. */
struct blx_info {
	char *id;
	char *name;
	char *image;
	char *status;
	int running;
	int pid;
	int cpus;
	int memory_mib;
};

struct blx_info_list {
	void *items;
	int count;
};

struct blx_metrics {
	double cpu_percent;
	int64_t memory_bytes;
};

typedef void blx_done_cb(struct blx_error *error, void *ctx);
typedef void blx_box_cb(struct blx_box *box, struct blx_error *error, void *ctx);
typedef void blx_got_cb(struct blx_box *box, bool created, struct blx_error *error, void *ctx);
typedef void blx_info_cb(struct blx_info *info, struct blx_error *error, void *ctx);
typedef void blx_list_cb(struct blx_info_list *list, struct blx_error *error, void *ctx);
typedef void blx_metrics_cb(struct blx_metrics *metrics, struct blx_error *error, void *ctx);
typedef void blx_pulled_cb(struct blx_pulled *pulled, struct blx_error *error, void *ctx);
typedef void blx_output_cb(const uint8_t *bytes, size_t n, void *ctx);
typedef void blx_exit_cb(int code, void *ctx);

/* What the library offers; optional members may be NULL, and those of the other mode. */
struct blx_api {
	void *library; /* dlopen()ed; stays for the life of the process */
	char version_text[BLX_VERSION_LEN];

	const char *(*version)(void);
	void (*error_free)(struct blx_error *error);

	int (*runtime_new)(const char *home, const struct blx_registry *registries, int count,
	    struct blx_runtime **out, struct blx_error *error);
	int (*credential_new)(
	    const char *key, struct blx_credential **out, struct blx_error *error);
	void (*credential_free)(struct blx_credential *c);
	int (*rest_new)(const char *url, struct blx_rest **out, struct blx_error *error);
	void (*rest_set_credential)(struct blx_rest *o, const struct blx_credential *c);
	void (*rest_set_path_prefix)(struct blx_rest *o, const char *prefix);
	void (*rest_free)(struct blx_rest *o);
	int (*rest_runtime_new)(
	    const struct blx_rest *o, struct blx_runtime **out, struct blx_error *error);
	int (*drain)(struct blx_runtime *r, int timeout_ms, struct blx_error *error);

	int (*options_new)(const char *image, struct blx_options **out, struct blx_error *error);
	void (*options_set_name)(struct blx_options *o, const char *name);
	void (*options_set_cpus)(struct blx_options *o, int cpus);
	void (*options_set_memory)(struct blx_options *o, int mib);
	void (*options_set_disk_gb)(struct blx_options *o, int gb);
	void (*options_network_on)(struct blx_options *o);
	void (*options_network_off)(struct blx_options *o);
	void (*options_inbound_off)(struct blx_options *o);
	void (*options_set_detach)(struct blx_options *o, int on);
	void (*options_set_auto_remove)(struct blx_options *o, int on);
	void (*options_set_rootfs)(struct blx_options *o, const char *path);
	void (*options_set_entrypoint)(struct blx_options *o, const char *const *args, int argc);
	void (*options_set_cmd)(struct blx_options *o, const char *const *args, int argc);
	void (*options_free)(struct blx_options *o); /* not of what a box was made of */

	/* Both take the options over. */
	int (*create)(struct blx_runtime *r, struct blx_options *o, blx_box_cb *cb, void *ctx,
	    struct blx_error *error);
	int (*get_or_create)(struct blx_runtime *r, struct blx_options *o, blx_got_cb *cb,
	    void *ctx, struct blx_error *error);
	int (*get)(struct blx_runtime *r, const char *name, blx_box_cb *cb, void *ctx,
	    struct blx_error *error);
	int (*start)(struct blx_box *b, blx_done_cb *cb, void *ctx, struct blx_error *error);
	int (*remove)(struct blx_runtime *r, const char *name, int force, blx_done_cb *cb,
	    void *ctx, struct blx_error *error);
	void (*box_free)(struct blx_box *b);
	int (*get_info)(struct blx_runtime *r, const char *name, blx_info_cb *cb, void *ctx,
	    struct blx_error *error);
	int (*list_info)(
	    struct blx_runtime *r, blx_list_cb *cb, void *ctx, struct blx_error *error);
	void (*info_free)(struct blx_info *info);
	void (*info_list_free)(struct blx_info_list *list);
	int (*metrics)(struct blx_box *b, blx_metrics_cb *cb, void *ctx, struct blx_error *error);

	int (*copy_into)(struct blx_box *b, const char *from, const char *to, blx_done_cb *cb,
	    void *ctx, struct blx_error *error);
	/* Waits for the box, unlike the others. */
	int (*exec)(struct blx_box *b, const struct blx_command *cmd, struct blx_exec **out,
	    struct blx_error *error);
	int (*on_stdout)(struct blx_exec *x, blx_output_cb *cb, void *ctx, struct blx_error *error);
	int (*on_stderr)(struct blx_exec *x, blx_output_cb *cb, void *ctx, struct blx_error *error);
	int (*on_exit)(struct blx_exec *x, blx_exit_cb *cb, void *ctx, struct blx_error *error);
	int (*stdin_write)(
	    struct blx_exec *x, const uint8_t *bytes, size_t n, struct blx_error *error);
	int (*stdin_close)(struct blx_exec *x, struct blx_error *error);
	int (*exec_signal)(
	    struct blx_exec *x, int sig, blx_done_cb *cb, void *ctx, struct blx_error *error);
	int (*exec_resize)(struct blx_exec *x, int rows, int cols, blx_done_cb *cb, void *ctx,
	    struct blx_error *error);
	void (*exec_free)(struct blx_exec *x); /* waits; ends the command if it runs */

	int (*images)(struct blx_runtime *r, struct blx_images **out, struct blx_error *error);
	int (*pull)(struct blx_images *i, const char *image, blx_pulled_cb *cb, void *ctx,
	    struct blx_error *error);
	void (*images_free)(struct blx_images *i);
	void (*pulled_free)(struct blx_pulled *p);
};

/*
 * Loads the library at `path` (NULL: BLX_LIBRARY, where the loader finds it) and finds its symbols,
 * for remote mode or local. 0; -ENOENT: there is no such library; -ENOEXEC: it is none, or one that
 * lacks what is needed; -EPROTONOSUPPORT: its version is not one of ours; *err says it all, and how
 * to mend it.
 */
int abi_load(const char *path, bool remote, struct blx_api *api, struct err *err);

/* Is that a version in our range? */
bool abi_version_fits(const char *text);

/* Of the elements of a list, the one after `at` (NULL: the first), or NULL when it cannot be told
 * where it is. Not to be asked for more than list->count. */
const struct blx_info *info_next(const struct blx_info_list *list, const struct blx_info *at);

#endif
