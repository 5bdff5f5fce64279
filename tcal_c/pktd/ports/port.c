/* Opening a port: into the target's network namespace and back, one kind after the other. */
#include "port.h"

#include "common/netlink/netns.h"
#include "common/clock.h"
#include "port_kinds.h"
#include "stamp.h"
#include "steering.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void port_fail(struct port_error *error, int code, const char *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->text, error->room, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < error->room) {
        snprintf(error->text + length, error->room - (size_t)length, ": %s%s%s", strerror(-code),
                 why && *why ? ": " : "", why ? why : "");
    }
}

#define SOURCE_MAC (VNET_HEADER_BYTES + 6) /* in what is read */

struct opening {
    struct port *port;
    const struct port_request *request;
    int program;
};

/* Runs in the target namespace: the TAP itself, or the stamp of a veth that is there already. */
static bool inside(void *context, struct port_error *error) {
    const struct opening *o = context;
    struct nl_why why;
    if (o->port->kind == PORT_TAP && !tap_open(o->port, o->request, error)) {
        return false;
    }
    int index = (int)if_nametoindex(o->request->name);
    if (o->program >= 0 && index > 0 && stamp_attach(o->program, index, &why) == 0) {
        o->port->stamp = STAMP_BPF;
    }
    return true;
}

bool port_visit(int netns, const char *path, port_inside *run, void *context,
                struct port_error *error) {
    int home = netns_enter(netns);
    if (home < 0) {
        port_fail(error, home, NULL, "enter network namespace %s", path);
        return false;
    }
    bool good = run(context, error);
    netns_return(home);
    return good;
}

/* The stamp takes the place of the source address, which is not known of frames. */
static bool open_kind(struct port *port, enum port_kind kind, const struct port_request *request,
                      int netns, int stamp, struct port_error *error) {
    int program = request->frames ? -1 : stamp;
    *port = (struct port){.fd = -1,
                          .out = -1,
                          .rps = -1,
                          .mac = PORT_MAC_BYTES,
                          .kind = kind,
                          .number = request->number,
                          .leave = request->leave};
    if (request->has_mac) {
        memcpy(port->mac, request->mac, sizeof port->mac);
    }
    if (kind == PORT_PACKET && !packet_open(port, request, netns, error)) {
        return false;
    }
    if (kind == PORT_PACKET && program < 0) {
        return true;
    }
    struct opening opening = {port, request, program};
    if (!port_visit(netns, request->netns, inside, &opening, error)) {
        if (port->fd >= 0) {
            close(port->fd);
        }
        packet_ring_close(&port->ring);
        packet_close(port);
        return false;
    }
    return true;
}

/* auto: a TAP, and where there is none a veth pair. The error tells why neither would do. */
static bool open_any(struct port *port, const struct port_request *request, int netns, int program,
                     struct port_error *error) {
    if (request->kind != PORT_AUTO) {
        return open_kind(port, request->kind, request, netns, program, error);
    }
    if (open_kind(port, PORT_TAP, request, netns, program, error)) {
        return true;
    }
    char second[160];
    struct port_error packet_error = {second, sizeof second};
    if (open_kind(port, PORT_PACKET, request, netns, program, &packet_error)) {
        return true;
    }
    size_t used = strlen(error->text);
    snprintf(error->text + used, error->room - used, "; %s", second);
    return false;
}

static struct port *open_line(struct port *port, const struct port_request *request,
                              struct port_error *error) {
    *port = (struct port){.fd = -1,
                          .out = -1,
                          .rps = -1,
                          .mac = PORT_MAC_BYTES,
                          .kind = PORT_LINE,
                          .number = request->number,
                          .delay_ns = request->delay_ns};
    if (line_open(port, request, error)) {
        return port;
    }
    free(port);
    return NULL;
}

struct port *port_open(const struct port_request *request, int program, char *text,
                       size_t text_room) {
    struct port_error error = {text, text_room};
    struct port *port = calloc(1, sizeof *port);
    if (port && request->line) {
        return open_line(port, request, &error);
    }
    int netns = open(request->netns, O_RDONLY | O_CLOEXEC);
    if (!port || netns < 0) {
        port_fail(&error, port ? -errno : -ENOMEM, NULL, "open %s", request->netns);
    } else if (open_any(port, request, netns, program, &error)) {
        close(netns);
        return port;
    }
    if (netns >= 0) {
        close(netns);
    }
    free(port);
    return NULL;
}

void port_close(struct port *port) {
    if (port->leave && port->kind == PORT_TAP) {
        tap_leave(port);
    }
    if (port->rps >= 0) {
        port_steer(port, "0"); /* the kernel counts who uses it, and forgets devices that vanish */
        close(port->rps);
    }
    close(port->fd);
    if (port->out >= 0) {
        close(port->out);
    }
    nl_close(&port->redirect.nl);
    packet_ring_close(&port->ring);
    if (!port->leave) {
        packet_close(port);
    }
    free(port);
}

int port_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    frame->at_ns = 0;
    int got = port->kind == PORT_TAP ? tap_read(port, data, room, frame)
                                     : packet_read(port, data, room, frame);
    if (got != 1 || frame->at_ns != 0) {
        return got;
    }
    /* Read after the frame: with a time from before it, a thread that was held up in between would
     * let the packet leave too early. */
    frame->at_ns = clock_now();
    if (port->stamp == STAMP_BPF && frame->bytes >= 12) {
        frame->at_ns = stamp_take(data + SOURCE_MAC, port->mac, frame->at_ns);
    }
    return got;
}

bool port_took(struct port *port, uint8_t *data, size_t got, uint64_t about_ns,
               struct port_frame *frame) {
    if (got < VNET_HEADER_BYTES) {
        return false;
    }
    frame->bytes = got - VNET_HEADER_BYTES;
    bool is_stamped = port->stamp == STAMP_BPF && frame->bytes >= 12;
    if (!is_stamped) {
        frame->at_ns = clock_now();
    } else if (!stamp_take_near(data + SOURCE_MAC, port->mac, about_ns, &frame->at_ns)) {
        frame->at_ns = stamp_take(data + SOURCE_MAC, port->mac, clock_now());
    }
    return true;
}

bool port_has_ended(const struct port *port, int error) {
    if (port->kind == PORT_PACKET) {
        /* ENETDOWN is told once when the device goes down; reading goes on when it is up again. */
        return error == EBADFD || error == ENXIO;
    }
    return error != EAGAIN && error != EINTR;
}

int port_write(struct port *port, const struct iovec *io, int count) {
    if (port->out >= 0) {
        return packet_send(port->out, io, count);
    }
    return port->kind == PORT_TAP ? tap_write(port, io, count) : packet_write(port, io, count);
}

void port_settle(const struct port *port) {
    if (port->kind == PORT_PACKET) {
        packet_settle(port);
    }
}

bool port_is_gone(const struct port *port) {
    return atomic_load_explicit(&port->gone, memory_order_relaxed) ||
           (port->kind == PORT_PACKET && packet_is_gone(port));
}

uint64_t port_lost(struct port *port) {
    if (port->kind == PORT_LINE) {
        return 0;
    }
    return port->kind == PORT_TAP ? tap_lost(port) : packet_lost(port);
}
