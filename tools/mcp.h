/*
 * mcp: the state of sbx-mcp, a server of the Model Context Protocol for one client, and what its
 * files ask of each other. One thread; everything happens in the loop.
 */
#ifndef SBXD_TOOLS_MCP_H
#define SBXD_TOOLS_MCP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "tools/dial.h"
#include "wire/json.h"

#define MCP_HOST_DIRS_MAX 16
#define MCP_WORKSPACE "/mnt/user-data/workspace" /* where commands start in a box */

/* What the command line and the environment say. Texts are theirs. */
struct mcp_options {
	struct dial_where where;
	const char *user; /* NULL: none */
	const char
	    *thread;	   /* NULL: the client's roots say it, or the box is this session's alone */
	const char *image; /* NULL: the configured one */
	double wait_s;	   /* for room for the box */
	double answer_s;   /* for an answer of the service, beyond what was asked for */
	double command_s;  /* of a command that brings no timeout */
	size_t output_bytes; /* of one result, about */
	const char *host_dirs[MCP_HOST_DIRS_MAX];
	size_t host_dir_count;
};

struct mcp_call;
struct mcp_http;

/* Whose box it is to be (mcp_scope.c). */
struct mcp_scope {
	bool known;
	char *thread; /* owned; NULL: a box of this session alone */
	bool asked;   /* the client was asked for its roots, and has not yet answered */
	struct loop_timer timer;
};

enum mcp_box_state {
	MCP_BOX_NONE,
	MCP_BOX_ACQUIRING,
	MCP_BOX_HELD,
};

/* The box (mcp_box.c): held by a connection whose end is the end of its lease. */
struct mcp_box {
	enum mcp_box_state state;
	struct mcp_http *lease; /* owned */
	unsigned int status;	/* of the answer that is being read */
	struct buf answer;
	char *id;	     /* owned */
	uint64_t generation; /* of the last one that was had; 0: none was, or it is not known */
	bool anonymous;	     /* nobody else can have it: closed at the end */
	bool was_there;	     /* there was one before this one */
	bool is_new;	     /* and this one has not its files: to be told once */
	bool ending;
	unsigned int serial; /* grows with each box */
};

struct mcp {
	const struct mcp_options *o;
	struct loop *loop;
	struct buf out;		     /* messages that are not yet written, a line each */
	void (*said)(struct mcp *m); /* something was added to `out`; may be NULL */
	bool broken;	  /* `out` could not take a message: nothing can be kept any more */
	bool initialized; /* the client began as revisions before 2026-07-28 do */
	bool has_roots;	  /* and has told that it can be asked for its roots */
	struct mcp_scope scope;
	struct mcp_box box;
	struct mcp_call *calls; /* under way, in the order in which they came */
	size_t call_count;
	int host_fds[MCP_HOST_DIRS_MAX]; /* owned */
	void *owner;
};

/* ---- mcp.c ---- */

/* The host directories are opened here. NULL with *err. */
struct mcp *mcp_create(const struct mcp_options *o, struct loop *l, struct err *err);

/* Ends everything at once; the service sees the connections close. */
void mcp_free(struct mcp *m);

/* ---- mcp_rpc.c ---- */

/* A request that was found sound. All of it is borrowed. */
struct mcp_request {
	const json_t *id; /* a string or an integer */
	const char *method;
	json_t *params;		    /* an object, or NULL */
	const json_t *meta;	    /* its _meta; NULL */
	bool modern;		    /* of a revision without handshake, from 2026-07-28 on */
	const json_t *capabilities; /* the client's, of a modern request */
};

/* Takes one line of the client's, without its newline. */
void mcp_take_line(struct mcp *m, const uint8_t *line, size_t n);

/* The line was longer than it may be. */
void mcp_refuse_line(struct mcp *m, size_t max);

/* ---- mcp_say.c ---- */

enum mcp_error {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_UNSUPPORTED_VERSION = -32022,
};

/* One message while it is written; members go to j. */
struct mcp_message {
	struct mcp *m;
	struct buf b;
	struct json_out j;
};

/* {"jsonrpc":"2.0" and "id", unless it is NULL. */
void mcp_message_begin(struct mcp *m, struct mcp_message *g, const json_t *id);
void mcp_message_end(struct mcp_message *g);

/* The same with a result that is begun, and ended. Modern ones say that they are complete. */
void mcp_result_begin(struct mcp *m, struct mcp_message *g, const json_t *id, bool modern);
void mcp_result_end(struct mcp_message *g);

/* A result of which that is all. */
void mcp_say_empty(struct mcp *m, const json_t *id, bool modern);

/* Any JSON value as a member. */
void mcp_put_value(struct json_out *j, const char *key, const json_t *value);

/* The name and version of this server as a member. */
void mcp_put_self(struct json_out *j, const char *key);

/* id NULL: it could not be read. */
void mcp_say_error(struct mcp *m, const json_t *id, enum mcp_error code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The client asked for a revision that is not served. */
void mcp_say_unsupported(struct mcp *m, const json_t *id, const char *asked);

/* ---- mcp_methods.c ---- */

/* Answers a request, or begins to. */
void mcp_do_request(struct mcp *m, const struct mcp_request *r);
void mcp_do_notification(struct mcp *m, const char *method, const json_t *params);

/* ---- mcp_versions.c ---- */

struct mcp_version {
	const char *name;
	bool modern;
};

/* Newest first; ends with a name that is NULL. */
extern const struct mcp_version mcp_versions[];

/* NULL when it is not served. */
const struct mcp_version *mcp_version_find(const char *name);

/* The newest one that begins with a handshake. */
const char *mcp_version_handshake(void);

/* ---- mcp_scope.c ---- */

/* Whose box it is to be is known now. If not, the client is asked, and the calls are told later. */
bool mcp_scope_known(struct mcp *m);

/*
 * The same for a modern call, which cannot wait: true when it has to be answered with the request
 * that the client should send it again with its roots.
 */
bool mcp_scope_ask(struct mcp *m, const struct mcp_request *r);

/* An answer of the client's, to whatever it was asked. */
void mcp_scope_take(struct mcp *m, const json_t *id, const json_t *result);

void mcp_scope_drop(struct mcp *m);

/* ---- mcp_box.c ---- */

/* Sees to it that there is a box; the calls that wait for it are told. */
void mcp_box_want(struct mcp *m);

/* The box of that number is not there any more, or does not answer: the next call acquires anew. */
void mcp_box_lost(struct mcp *m, unsigned int serial);

/*
 * Gives it back. One that nobody else can have is closed: false while that is under way, and
 * m->said is called when it is done; bounded.
 */
bool mcp_box_end(struct mcp *m);

void mcp_box_drop(struct mcp *m);

#endif
