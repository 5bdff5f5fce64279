/* A device in a network namespace, or a line, as a file descriptor that yields and takes frames. */
#ifndef PKTD_PORT_H
#define PKTD_PORT_H

#include "packet_ring.h"
#include "redirect.h"

#include <net/if.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

enum port_kind { PORT_AUTO, PORT_TAP, PORT_PACKET, PORT_LINE };

/* The same address on every port, but for those of frames and of instances with several: a packet
 * needs no new header on its way. */
#define VNET_HEADER_BYTES 10u /* struct virtio_net_hdr */

#define PORT_MAC_BYTES                                                                             \
    { 0x02, 0x54, 0x53, 0x00, 0x00, 0x01 }

struct port_request {
    uint32_t number;
    enum port_kind kind;
    uint32_t mtu;
    uint32_t queue; /* packets that a TAP holds until they are read; 0: as many as usual */
    char name[IFNAMSIZ];
    const char *netns; /* path */
    bool leave;        /* the end of its namespace removes the device, not port_close */
    const char *line;  /* path, of a line to another machine; then only `delay_ns` counts */
    uint64_t delay_ns; /* that frames take over the line */
    bool frames;       /* any frame may leave by it and come: the device has ARP */
    bool has_mac;      /* `mac`, in place of that of all others */
    uint8_t mac[6];
    bool plain; /* the caller reads from the descriptor itself, so a packet port has no ring */
};

#define PREFIX_LIMIT 32u

/* A device that is there already, and what of that which leaves by it becomes pktd's. */
struct attach_request {
    struct port_request port; /* the name of pktd's own device is chosen, its mtu too */
    char target[IFNAMSIZ];
    struct prefix prefix[PREFIX_LIMIT];
    uint32_t prefix_count;
};

enum port_stamp { STAMP_READ, STAMP_SOCKET, STAMP_BPF };

/* The data thread asks for it, the control thread does it, and the data thread takes it back. */
enum port_steered { STEERED_NOT, STEERED_ASKED, STEERED_NOW, STEERED_REFUSED };

struct port {
    int fd;
    enum port_kind kind; /* never PORT_AUTO */
    enum port_stamp stamp;
    uint32_t number;
    bool leave;              /* see port_request */
    char peer[IFNAMSIZ];     /* PORT_PACKET: pktd's end of the veth pair */
    int index;               /* PORT_TAP: in its namespace; it outlives a new name */
    uint64_t lost;           /* control thread: see port_lost */
    struct packet_ring ring; /* PORT_PACKET */
    /* Data thread, in virtual time: where the read goes that is on its way, and what it is known
     * by. */
    uint8_t *buffer;
    uint64_t tag;
    /* Data thread, of a line: what of the buffer is an incomplete record, and the frames that are
     * not there yet, first those that arrive first. */
    uint64_t delay_ns;
    size_t kept;
    struct frame *first;
    struct frame *last;
    struct port *next_line;
    /* Where its receivers' protocol work is done, see loop/loop.h. */
    int rps; /* the file that says so; -1: not open */
    _Atomic enum port_steered steered;
    uint32_t window_frames; /* data thread: written since it last looked */
    uint64_t wrote_ns;      /* data thread: when it last wrote */
    atomic_bool gone;       /* set by the data thread: the device has disappeared */
    uint8_t mac[6];         /* source of the frames that come, under the stamp */
    /* Of an attached port; `out` is -1 otherwise. */
    int out; /* a packet socket on the target */
    char target[IFNAMSIZ];
    struct redirect redirect;
    uint64_t netns_inode;
};

/* What one read gave: bytes after the virtio header, and when the packet was sent. */
struct port_frame {
    size_t bytes;
    uint64_t at_ns;
};

/* Opens the device; NULL with the reason in `error`. Control thread. `program` is the stamp
 * program's descriptor or -1. */
struct port *port_open(const struct port_request *request, int program, char *error,
                       size_t error_room);

/* Makes a device beside the target and sends there what leaves by it towards the prefixes; frames
 * that are written leave by the target. NULL with the reason in `error`. Control thread. */
struct port *port_attach(const struct attach_request *request, int program, char *error,
                         size_t error_room);

/* Leaves the target of an attached port as it was, which must come before port_close: 0 or -errno.
 * Of any other port, or with `leave`, nothing is done. Control thread. */
int port_restore(struct port *port, struct nl_why *why);

/* Removes the device, for which the kernel takes 20 ms and more; with `leave` only lets go of it:
 * the kernel removes the devices of a dying namespace together, in the background. */
void port_close(struct port *port);
const char *port_kind_name(enum port_kind kind);
const char *port_stamp_name(enum port_stamp stamp);

/* One frame into `room` bytes at `data` (virtio header first), and when it came, never too early:
 * 1, 0 when there is none, or -errno. */
int port_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame);

/* The same of `got` bytes that the caller has read; false when they are no frame. The clock is only
 * looked at where a frame has no stamp, or one that is not near `about_ns`. */
bool port_took(struct port *port, uint8_t *data, size_t got, uint64_t about_ns,
               struct port_frame *frame);

/* Whether this error of the caller's own read means that there will be no more frames. */
bool port_has_ended(const struct port *port, int error);

/* Takes note of an error that the device has told and that reading a ring does not take away: its
 * device is down. */
void port_settle(const struct port *port);

/* Packets that the socket or the TAP had no room for since it was opened: they were never read, and
 * senders were not told. Control thread. */
uint64_t port_lost(struct port *port);

/* Whether somebody else has removed the device. Control thread. */
bool port_is_gone(const struct port *port);

/* Writes a frame, io[0] being the virtio header: 0 or -errno. Never waits. */
int port_write(struct port *port, const struct iovec *io, int count);

/* What is before each frame on a line, in the machine's byte order. */
struct line_record {
    uint64_t due_ns; /* when the frame is at the other end, by the clock of both */
    uint64_t bytes;  /* of virtio header and frame; 0: the sender has opened the line */
};

/* Writes a frame that leaves at `at_ns` on a line: 0 or -errno. Waits where there is no room. */
int line_write(struct port *port, uint64_t at_ns, const struct iovec *io, int count);

#endif
