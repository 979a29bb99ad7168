/* abi: finds BoxLite's library and its symbols. sbx-boxlite, once; constant after that. */
#include "drivers/boxlite/program/abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum abi_need {
	NEEDED,
	LOCAL,	  /* in local mode */
	REMOTE,	  /* in remote mode */
	OPTIONAL, /* what it is for is left out */
};

#define AT(member) offsetof(struct blx_api, member)

static const struct {
	const char *name;
	size_t offset;
	enum abi_need need;
} symbols[] = {
    {"boxlite_version", AT(version), NEEDED},
    {"boxlite_error_free", AT(error_free), NEEDED},
    {"boxlite_runtime_new", AT(runtime_new), LOCAL},
    {"boxlite_api_key_credential_new", AT(credential_new), REMOTE},
    {"boxlite_credential_free", AT(credential_free), REMOTE},
    {"boxlite_rest_options_new", AT(rest_new), REMOTE},
    {"boxlite_rest_options_set_credential", AT(rest_set_credential), REMOTE},
    {"boxlite_rest_options_set_path_prefix", AT(rest_set_path_prefix), REMOTE},
    {"boxlite_rest_options_free", AT(rest_free), REMOTE},
    {"boxlite_rest_runtime_new_with_options", AT(rest_runtime_new), REMOTE},
    {"boxlite_runtime_drain", AT(drain), NEEDED},
    {"boxlite_options_new", AT(options_new), NEEDED},
    {"boxlite_options_set_name", AT(options_set_name), NEEDED},
    {"boxlite_options_set_cpus", AT(options_set_cpus), NEEDED},
    {"boxlite_options_set_memory", AT(options_set_memory), NEEDED},
    {"boxlite_options_set_disk_size_gb", AT(options_set_disk_gb), OPTIONAL},
    {"boxlite_options_set_network_enabled", AT(options_network_on), NEEDED},
    {"boxlite_options_set_network_disabled", AT(options_network_off), NEEDED},
    {"boxlite_options_set_network_inbound_disabled", AT(options_inbound_off), OPTIONAL},
    {"boxlite_options_set_detach", AT(options_set_detach), NEEDED},
    {"boxlite_options_set_auto_remove", AT(options_set_auto_remove), OPTIONAL},
    {"boxlite_options_set_rootfs_path", AT(options_set_rootfs), OPTIONAL},
    {"boxlite_options_set_entrypoint", AT(options_set_entrypoint), OPTIONAL},
    {"boxlite_options_set_cmd", AT(options_set_cmd), OPTIONAL},
    {"boxlite_options_free", AT(options_free), NEEDED},
    {"boxlite_create_box", AT(create), NEEDED},
    {"boxlite_get_or_create_box", AT(get_or_create), OPTIONAL},
    {"boxlite_get", AT(get), OPTIONAL},
    {"boxlite_start_box", AT(start), NEEDED},
    {"boxlite_remove", AT(remove), NEEDED},
    {"boxlite_box_free", AT(box_free), NEEDED},
    {"boxlite_get_info", AT(get_info), NEEDED},
    {"boxlite_list_info", AT(list_info), REMOTE},
    {"boxlite_free_box_info", AT(info_free), NEEDED},
    {"boxlite_free_box_info_list", AT(info_list_free), REMOTE},
    {"boxlite_box_metrics", AT(metrics), OPTIONAL},
    {"boxlite_copy_into", AT(copy_into), NEEDED},
    {"boxlite_box_exec", AT(exec), NEEDED},
    {"boxlite_execution_on_stdout", AT(on_stdout), NEEDED},
    {"boxlite_execution_on_stderr", AT(on_stderr), OPTIONAL},
    {"boxlite_execution_on_exit", AT(on_exit), NEEDED},
    {"boxlite_execution_stdin_write", AT(stdin_write), NEEDED},
    {"boxlite_execution_stdin_close", AT(stdin_close), NEEDED},
    {"boxlite_execution_signal", AT(exec_signal), OPTIONAL},
    {"boxlite_execution_tty_resize", AT(exec_resize), OPTIONAL},
    {"boxlite_execution_free", AT(exec_free), NEEDED},
    {"boxlite_runtime_images", AT(images), OPTIONAL},
    {"boxlite_image_pull", AT(pull), OPTIONAL},
    {"boxlite_image_free", AT(images_free), OPTIONAL},
    {"boxlite_free_image_pull_result", AT(pulled_free), OPTIONAL},
};

#define SYMBOLS (sizeof(symbols) / sizeof(symbols[0]))

static bool is_needed(enum abi_need need, bool remote)
{
	return need == NEEDED || need == (remote ? REMOTE : LOCAL);
}

bool abi_version_fits(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10);
	unsigned long minor;

	if (*text < '0' || *text > '9' || *end != '.') /* a sign is a number's for strtoul() */
		return false;
	text = end + 1;
	minor = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '.')
		return false;
	return major == 0 && minor >= BLX_VERSION_MIN && minor < BLX_VERSION_END;
}

/* The loader's words hold the path already. */
static int fail_open(const char *path, struct err *err)
{
	const char *why = dlerror();
	bool missing =
	    path ? access(path, F_OK) < 0 : why && strstr(why, "No such file or directory") != NULL;

	if (missing && path)
		return err_set(err, ENOENT,
		    "there is no BoxLite library at %s: install BoxLite's C library, or correct "
		    "boxlite.library",
		    path);
	if (missing)
		return err_set(err, ENOENT,
		    "the loader finds no %s: install BoxLite's C library, or say with "
		    "boxlite.library where it is",
		    BLX_LIBRARY);
	return err_set(err, ENOEXEC, "BoxLite's library cannot be loaded: %s", why ? why : "?");
}

static int find_version(struct blx_api *api, const char *shown, struct err *err)
{
	const char *text;

	*(void **)&api->version = dlsym(api->library, symbols[0].name);
	if (!api->version)
		return err_set(err, ENOEXEC,
		    "%s lacks %s: it is no BoxLite library of version 0.%u or later", shown,
		    symbols[0].name, BLX_VERSION_MIN);
	text = api->version();
	(void)snprintf(api->version_text, sizeof(api->version_text), "%s", text ? text : "");
	if (!abi_version_fits(api->version_text))
		return err_set(err, EPROTONOSUPPORT,
		    "%s is BoxLite %s, and this sbxd was written for versions from 0.%u.0 to "
		    "before "
		    "0.%u.0: install one of these",
		    shown, api->version_text, BLX_VERSION_MIN, BLX_VERSION_END);
	return 0;
}

int abi_load(const char *path, bool remote, struct blx_api *api, struct err *err)
{
	const char *shown = path ? path : BLX_LIBRARY;
	struct blx_api a = {.library = dlopen(shown, RTLD_NOW | RTLD_LOCAL)};

	if (!a.library)
		return fail_open(path, err);
	if (find_version(&a, shown, err) < 0)
		return -err->code;
	for (size_t i = 0; i < SYMBOLS; i++) {
		void *found = dlsym(a.library, symbols[i].name);

		if (!found && is_needed(symbols[i].need, remote))
			return err_set(err, ENOEXEC,
			    "%s (BoxLite %s) lacks %s: install a build of version 0.%u to 0.%u "
			    "that "
			    "has it",
			    shown, a.version_text, symbols[i].name, BLX_VERSION_MIN,
			    BLX_VERSION_END - 1);
		memcpy((char *)&a + symbols[i].offset, &found, sizeof(found));
	}
	*api = a;
	return 0;
}
