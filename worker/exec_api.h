/* exec_api: the requests about executions that are answered by one response. sbx-worker. */
#ifndef SBXD_WORKER_EXEC_API_H
#define SBXD_WORKER_EXEC_API_H

#define EXEC_ORDER_MAX 4096U /* bytes of the body of signal and resize */

struct conn;
struct execution;
struct http_head;

/* Routes' begin(). */
void exec_begin_start(struct conn *c, const struct http_head *h);
void exec_begin_list(struct conn *c, const struct http_head *h);
void exec_begin_get(struct conn *c, const struct http_head *h);
void exec_begin_kill(struct conn *c, const struct http_head *h);
void exec_begin_signal(struct conn *c, const struct http_head *h);
void exec_begin_resize(struct conn *c, const struct http_head *h);

/* Answers 404 for the execution that the request names. */
void exec_api_not_found(struct conn *c);

#endif
