/*
 * err: an error that a person will read.
 *
 * Leaves return 0 or -errno. Where a human or an API client sees the result, the function also
 * takes a `struct err *` which it sets only on failure: what was attempted, on what, and why it
 * failed.
 */
#ifndef SBXD_LIB_ERR_H
#define SBXD_LIB_ERR_H

struct err {
	int code; /* a positive errno value, 0 when unset */
	char text[244];
};

/*
 * Sets *e (when e is not NULL) to `code` and the formatted text; a text that is too long is cut.
 * Returns -code, so that a leaf can write `return err_set(e, EINVAL, ...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set(), with ": " and the text of errno value `code` appended. */
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
