/* exec_say: the text messages that an attached client gets. sbx-worker. */
#ifndef SBXD_WORKER_EXEC_SAY_H
#define SBXD_WORKER_EXEC_SAY_H

struct conn_ws;
struct execution;

/* {"type":"error", ...} */
void exec_say_error(struct conn_ws *w, const char *message);

/* {"type":"exit", ...}; message "": there is nothing to be said of it. */
void exec_say_exit(struct conn_ws *w, int exit_code, const char *status, const char *message);

/* Says, once, what of x's output nobody has had and nobody can have any more. */
void exec_say_lost(struct conn_ws *w, struct execution *x);

#endif
