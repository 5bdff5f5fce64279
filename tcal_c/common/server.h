/* Serving a session on two descriptors: bytes in, lines to the session, answers out. */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include "session.h"

struct server {
    struct session *session;
    int in;
    int out;
    int wake; /* when it is readable, `woken` is called; -1: never */
    void (*woken)(struct proto *p);
};

/* Serves until `quit` is answered or the client is gone: 0 or -errno. */
int server_run(const struct server *server);

#endif
