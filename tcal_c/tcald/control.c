/* One thread: commands are read, batches applied when they are due, answers written. */
#include "control.h"

#include "common/server.h"
#include "proto.h"

#include <errno.h>
#include <stdlib.h>

struct control {
    struct stage stage;
    struct proto proto;
    struct text out;
};

static void keep_number(void *context, const struct tcal_port_info *info) {
    *(uint32_t *)context = info->port;
}

static void detach_all(struct tcal *tcal) {
    struct tcal_error error;
    for (uint32_t last = TCAL_NONE;; last = TCAL_NONE) {
        tcal_ports(tcal, keep_number, &last);
        if (last == TCAL_NONE) {
            return;
        }
        tcal_detach(tcal, last, &error);
    }
}

int control_serve(struct tcal *tcal, const char *lacks, int in, int out) {
    struct control *c = calloc(1, sizeof *c);
    if (!c || !stage_init(&c->stage, tcal)) {
        return -ENOMEM;
    }
    c->proto = (struct proto){.session = {.program = &proto_program, .out = &c->out},
                              .tcal = tcal,
                              .stage = &c->stage,
                              .lacks = lacks};
    struct server server = {&c->proto.session, in, out, -1, NULL};
    int result = server_run(&server);
    detach_all(tcal);
    stage_destroy(&c->stage);
    text_free(&c->out);
    free(c);
    return result;
}
