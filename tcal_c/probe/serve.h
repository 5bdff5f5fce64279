/* The listening end: one loop, datagrams in serve.c, connections in serve_tcp.c. */
#ifndef TPROBE_SERVE_H
#define TPROBE_SERVE_H

#include "probe.h"
#include "wire.h"

struct connections;

struct connections *connections_new(int epoll_fd);
/* Accepts what waits on the listening socket. */
void connections_accept(struct connections *all, int listen_fd);
/* A connection is readable or writable; `slot` is what epoll was given. */
void connections_ready(struct connections *all, uint32_t slot);
void connections_free(struct connections *all);

/* One more arrival; `in_span`: after what is left out of the rate. */
void report_count(struct wire_report *r, size_t size, int64_t now_ns, bool in_span);

/* epoll's data: the two sockets that are no connection come first. */
enum { TAG_UDP = 0, TAG_LISTEN = 1, TAG_CONNECTION = 2 };

#endif
