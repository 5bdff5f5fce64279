/* Serving the protocol while the data thread works. */
#include "control.h"

#include "common/prefer.h"
#include "common/server.h"
#include "host.h"

#include <errno.h>
#include <stdlib.h>

#define NICE (-10)

struct control {
    struct proto proto; /* first: see woken */
    struct host host;
    struct stage stage;
    struct text out;
};

static void woken(struct proto *p) {
    host_collect(&((struct control *)(void *)p)->host);
}

int control_serve(struct loop *loop, int program, int in, int out) {
    if (!loop->is_virtual) {
        /* Where permitted before the programs under test, which keep processors busy when the data
         * thread asks for something, and behind that one. */
        ask_for_short_slices(NICE, false);
    }
    struct control *c = calloc(1, sizeof *c);
    if (!c || !stage_init(&c->stage, loop->engine)) {
        return -ENOMEM;
    }
    struct proto_host functions = host_functions;
    functions.context = &c->host;
    c->host.loop = loop;
    c->host.program = program;
    c->host.proto = &c->proto;
    c->proto = (struct proto){.session = {.program = &proto_program, .out = &c->out},
                              .stage = &c->stage,
                              .engine = loop->engine,
                              .host = &functions};
    struct server server = {&c->proto.session, in, out, loop->report, woken};
    int result = server_run(&server);
    host_restore_ports(&c->host);
    loop_stop(loop);
    /* The data thread, which used them, has ended. */
    host_close_ports(&c->host);
    proto_destroy(&c->proto);
    stage_destroy(&c->stage);
    text_free(&c->out);
    free(c);
    return result;
}
