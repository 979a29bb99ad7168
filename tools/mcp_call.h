/*
 * mcp_call: a call of a tool, from its request to its answer; and a tool as the calls see it.
 * sbx-mcp.
 */
#ifndef SBXD_TOOLS_MCP_CALL_H
#define SBXD_TOOLS_MCP_CALL_H

#include "tools/mcp.h"
#include "tools/mcp_http.h"

#define MCP_CALLS_MAX 64		     /* at once */
#define MCP_ANSWER_MAX (16U * 1024U * 1024U) /* of an answer of the service that is kept whole */

/*
 * What a tool does. Each function: 0, or -errno with *err, which ends the call with an error, where
 * nothing else is said.
 */
struct mcp_handler {
	size_t state_size; /* bytes of call->state, zeroed */
	bool in_turn;	   /* calls with the same key run one after the other */

	/* Takes call->args; sets call->key if it is in_turn. */
	int (*begin)(struct mcp_call *call, struct err *err);
	/* The box is there: asks the service, mcp_call_ask(). May be called twice. */
	int (*ask)(struct mcp_call *call, struct err *err);
	/* Part of the body of an answer that is a success; 1: no more is wanted. NULL: collected in
	 * call->answer. */
	int (*take)(struct mcp_call *call, const uint8_t *bytes, size_t n, struct err *err);
	/* That answer is complete: writes call->text, note and data. 1: it asked again instead. */
	int (*end)(struct mcp_call *call, struct err *err);
	/* The answer is an error; 1: it asked again instead. NULL: never does. */
	int (*refused)(struct mcp_call *call, unsigned int status, struct err *err);
	/* Gives up what the state holds. NULL: nothing. */
	void (*drop)(struct mcp_call *call);
};

struct mcp_tool {
	const char *name;
	const char *title;
	const char *description;
	const char *input;  /* JSON schema of its arguments */
	const char *output; /* of its structured content */
	bool reads;	    /* changes nothing */
	bool destroys;	    /* may change or remove what was there */
	bool repeats;	    /* the same call again changes nothing more */
	bool host;	    /* only where directories of the host are allowed */
	const struct mcp_handler *handler;
};

enum mcp_call_stage {
	MCP_CALL_TURN, /* waits for others of its key */
	MCP_CALL_BOX,  /* waits for the box */
	MCP_CALL_RUNS,
	MCP_CALL_OPEN, /* a subscription */
};

struct mcp_call {
	struct mcp *m;
	struct mcp_call *next;
	const struct mcp_tool *tool; /* NULL: a subscription */
	enum mcp_call_stage stage;
	json_t *id;    /* owned */
	json_t *args;  /* owned; an object */
	json_t *token; /* owned; for progress; NULL */
	bool modern;
	char *traceparent;   /* owned; NULL */
	char *key;	     /* owned; what has to be done in turn: a path in the box */
	void *state;	     /* owned; the tool's */
	unsigned int box;    /* the number of the box that it is about */
	uint64_t generation; /* of the box in which it began; 0: in none yet, or it is not known */
	unsigned int asked;  /* how many requests it has made */
	struct mcp_http *http;
	unsigned int status; /* of the answer that is being read */
	struct buf answer;
	struct loop_timer tick; /* of progress */
	uint64_t began;
	uint64_t told; /* when progress was last told */
	char doing[256];

	/* The result. */
	struct buf text;
	struct buf note; /* a second text, about the first; empty: none */
	struct buf data; /* structured content: a JSON object */
	bool is_error;
};

/* Begins a call, or a subscription (tool NULL). False after it was refused. */
bool mcp_call_begin(
    struct mcp *m, const struct mcp_request *r, const struct mcp_tool *tool, json_t *args);

/* The call or subscription with that id; NULL. */
struct mcp_call *mcp_call_find(struct mcp *m, const json_t *id);

/* It ends, and nothing is said of it any more. */
void mcp_call_cancel(struct mcp_call *call);

/* All of them, without an answer. Subscriptions get theirs if told. */
void mcp_calls_drop(struct mcp *m, bool tell);

/* The box is there: calls that waited for it go on. Or it cannot be had, and they end with why. */
void mcp_calls_go_on(struct mcp *m);
void mcp_calls_fail(struct mcp *m, const struct err *err);

/* It ends, with an error or with what its tool wrote down, and is freed. */
void mcp_call_fail(struct mcp_call *call, const struct err *err);
void mcp_call_complete(struct mcp_call *call);

/* ---- for tools (mcp_ask.c) ---- */

struct mcp_ask {
	const char *method;
	const struct buf *rest; /* of the path, behind the box; with its query */
	const char *accept;
	const void *body; /* NULL: none */
	size_t body_len;
	int body_fd; /* -1 */
	uint64_t body_fd_len;
	double seconds; /* that it may take longer than other answers */
};

#define MCP_ASK_DEFAULTS .body_fd = -1

/* A request about the box, on a connection of its own. 0 or -errno with *err. */
int mcp_call_ask(struct mcp_call *call, const struct mcp_ask *ask, struct err *err);

/* Whether an error's reason says that the box is not there any more. */
bool mcp_reason_is_loss(const char *reason);

/* ---- mcp_progress.c ---- */

/* What the call is at; told to the client if it wants to know. */
void mcp_call_doing(struct mcp_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* n bytes of any text, of which the end counts, as what it is at. */
void mcp_call_doing_bytes(struct mcp_call *call, const uint8_t *bytes, size_t n);

/* From now on its client is told, if it wants to know. */
void mcp_progress_begin(struct mcp_call *call);

/* ---- mcp_result.c, for mcp_call.c ---- */

/* The answer of a call that is complete. */
void mcp_result_say(struct mcp_call *call);

/* The answer of one that failed. */
void mcp_result_fail(struct mcp_call *call, const struct err *err);

#endif
