/* exec_attach: GET attach: the client of an execution, by a WebSocket. sbx-worker. */
#ifndef SBXD_WORKER_EXEC_ATTACH_H
#define SBXD_WORKER_EXEC_ATTACH_H

struct conn;
struct http_head;

/* A route's begin(). */
void exec_begin_attach(struct conn *c, const struct http_head *h);

#endif
