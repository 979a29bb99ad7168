/*
 * config_table: the keys of the configuration, and reading and writing one value as text. Used only
 * by the config_*.c files of sbxd.
 */
#ifndef SBXD_SUPERVISOR_CONFIG_TABLE_H
#define SBXD_SUPERVISOR_CONFIG_TABLE_H

#include "supervisor/config.h"

enum config_type {
	CONFIG_UINT,	    /* uint32_t: whole number in min..max */
	CONFIG_SIZE,	    /* uint64_t: whole number in min..max */
	CONFIG_MILLI,	    /* uint32_t: thousandths; text has at most 3 decimals */
	CONFIG_SECONDS,	    /* uint64_t: ns; text has at most 9 decimals; min and max are ns */
	CONFIG_ENUM,	    /* uint32_t: index into names */
	CONFIG_WORD,	    /* char[max]: one of names, kept as text */
	CONFIG_TEXT,	    /* char[max]: at least min bytes */
	CONFIG_SECRET,	    /* as CONFIG_TEXT, and shown to nobody */
	CONFIG_FILE,	    /* char[max]: empty or an absolute path */
	CONFIG_LISTEN,	    /* struct config_listen */
	CONFIG_ENVIRONMENT, /* struct config_environment; only from a YAML mapping */
	CONFIG_TYPES,
};

struct config_key {
	const char *name; /* in a driver's section: "namespace.uid_base" */
	enum config_type type;
	size_t offset; /* in struct config */
	uint64_t min;
	uint64_t max;
	const char *text;	  /* default, as a person would write it; NULL for a map */
	const char *const *names; /* NULL-terminated */
	bool reloadable;
};

#define CONFIG_KEYS 60

extern const struct config_key config_keys[CONFIG_KEYS];

/* Index of a key below section ("" for none), or -1. */
int config_key_find(const char *section, const char *name);

/* True when `name` is a driver's section. */
bool config_section_known(const char *name);

/* True for a key of DeerFlow's sandbox: block that says nothing to us. */
bool config_key_ignored(const char *name);

/* The known name nearest to a mistyped one, or NULL when none is near. */
const char *config_key_guess(const char *section, const char *name);

/*
 * Reads text as key's type into c. 0, or -EINVAL with *err "KEY: 'VALUE' is ...; allowed: ...";
 * c is then untouched.
 */
int config_value_parse(
    const struct config_key *key, const char *text, struct config *c, struct err *err);

/* Appends what is allowed for key, for messages and help. */
void config_value_allowed(const struct config_key *key, char *out, size_t size);

/* Appends key's value as one YAML scalar. Not for CONFIG_ENVIRONMENT. 0 or -errno. */
int config_value_print(const struct config_key *key, const struct config *c, struct buf *out);

/* Appends key's value as it stands, without quotes; a secret too. Not for CONFIG_ENVIRONMENT. 0 or
 * -errno. */
int config_value_put(const struct config_key *key, const struct config *c, struct buf *out)
    __attribute__((warn_unused_result));

/* Appends a double-quoted YAML scalar that config_load() reads back as `text`. 0 or -errno. */
int config_put_quoted(struct buf *out, const char *text);

/* True when both hold the same value of key. */
bool config_value_equal(
    const struct config_key *key, const struct config *a, const struct config *b);

/* Bytes that a value of key's type takes in struct config. */
size_t config_value_size(const struct config_key *key);

/* Where each key got its value; "" is the default. */
struct config_origins {
	char place[CONFIG_KEYS][96];
};

/*
 * Reads one YAML file over what is in c. 0, -ENOENT when it is not there, or -errno with *err.
 * On failure c may hold some of the file's values; it stays valid for config_free().
 */
int config_yaml_read(const char *path, char *const *env, struct config *c,
    struct config_origins *origins, struct err *err);

/* Applies SBXD_<KEY> of env. 0 or -EINVAL with *err. */
int config_env_apply(
    char *const *env, struct config *c, struct config_origins *origins, struct err *err);

/*
 * Replaces $VAR and ${VAR} in text from env; $$ is one $, and a $ before anything else stays. 0, or
 * -EINVAL with *err naming the missing variable. The caller frees *out.
 */
int config_env_expand(const char *text, char *const *env, char **out, struct err *err);

/* Checks what concerns several keys at once. 0 or -EINVAL with *err. */
int config_check(const struct config *c, const struct config_origins *origins, struct err *err);

/* Adds name=value. 0, or -EINVAL (no POSIX name, given twice, no UTF-8, too much in all) or -ENOMEM
 * with *err. */
int config_environment_add(
    struct config_environment *e, const char *name, const char *value, struct err *err);

#endif
