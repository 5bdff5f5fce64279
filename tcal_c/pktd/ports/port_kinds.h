/* The kinds of port, as port.c sees them. */
#ifndef PKTD_PORT_KINDS_H
#define PKTD_PORT_KINDS_H

#include "port.h"

/* Why a port could not be opened, in full. */
struct port_error {
    char *text;
    size_t room;
};

void port_fail(struct port_error *error, int code, const char *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs `inside` in that network namespace and comes back; false when it did or the kernel refuses.
 */
typedef bool port_inside(void *context, struct port_error *error);
bool port_visit(int netns, const char *path, port_inside *inside, void *context,
                struct port_error *error);

/* Called in the target network namespace (tap) or with it as a descriptor (packet); they
 * fill fd and peer and return false with `error` set when the kernel refuses. */
bool tap_open(struct port *port, const struct port_request *request, struct port_error *error);
bool line_open(struct port *port, const struct port_request *request, struct port_error *error);
bool packet_open(struct port *port, const struct port_request *request, int netns,
                 struct port_error *error);

/* As port_read; at_ns stays as it is unless the kernel says when the frame came. */
int tap_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame);
int packet_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame);
void packet_settle(const struct port *port);
void tap_leave(struct port *port); /* its close will not remove the device */
int tap_write(struct port *port, const struct iovec *io, int count);
int packet_write(struct port *port, const struct iovec *io, int count);

/* Writes a frame to a packet socket as port_write does. */
int packet_send(int fd, const struct iovec *io, int count);

uint64_t packet_lost(struct port *port);
uint64_t tap_lost(struct port *port);
bool packet_is_gone(const struct port *port);

/* Brings a device of pktd's up, without IPv6 where that can be turned off: 0 or -errno. */
int port_raise(const struct nl_channel *nl, const char *name, struct nl_why *why);

/* 0 or -errno. */
int port_set_option(int fd, int level, int option, int value);

/* Removes pktd's end of the pair. */
void packet_close(struct port *port);

/* Packets the device holds for pktd. A TAP takes packets off the sender's hands, so it has no
 * back pressure and must hold what comes while the data thread is kept from running. */
#define PORT_QUEUE_PACKETS 16384

#endif
