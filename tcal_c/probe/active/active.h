/* tprobe active: probes between network namespaces of one machine, at times that a client states.
 *
 * One process has a raw socket (IP protocol 253, RFC 3692) in the namespace of each end, so both
 * ends of a probe read one clock and no program sees it. This part knows neither sockets nor clock:
 * time is an argument, and what sends is a table of functions. The protocol is in docs/probes.md.
 */
#ifndef PROBE_ACTIVE_H
#define PROBE_ACTIVE_H

#include "common/session.h"

enum {
    ENDS = 65535,                /* an end has the number of its node */
    PAIRS = 4096,                /* more than any run asks for */
    WAITING = 65536,             /* probes that were asked for and are not due */
    FLIGHTS = 65536,             /* probes that were sent and not reported; a power of two */
    PROBE_BYTES = 8,             /* behind the IP header: cookie and number, in network order */
    PROBE_MOST_BYTES = 9000,     /* of which the rest is 0 */
    SKIPPED_AFTER_NS = 100000000 /* a probe that is so late is not sent: it would come in a crowd */
};

struct end {
    bool open;
    struct addr addr;
    const char *device; /* that probes leave by without the kernel's look at routes and neighbours;
                           NULL: none. Only while the end is opened */
    bool has_mac;       /* it has a device, whose address is this */
    uint8_t mac[6];
};

struct pair {
    bool declared;
    uint32_t from, to;
    uint64_t wait_ns; /* the longest that a probe is planned to take */
    uint32_t bytes;   /* of a probe, behind the IP header */
};

/* UNKNOWN: an end was closed, so that nobody waits for it any more. */
enum fate { REPORTED, UNDER_WAY, ARRIVED, UNKNOWN };

struct flight {
    uint64_t sent_ns, delay_ns;
    uint32_t pair;
    enum fate fate;
};

struct asked {
    uint64_t at_ns;
    uint32_t pair;
};

/* The wall clock beside CLOCK_MONOTONIC, as they were last read together. */
struct wall {
    int64_t ahead_ns;
    uint64_t doubted_until_ns; /* it was stepped: stamps may be from before */
};

/* What there is of the world. `open` and `send`: 0 or -errno. */
struct active_io {
    void *context;
    uint64_t (*clock)(void *context);
    int (*open)(void *context, uint32_t number, const char *netns, const struct end *end);
    int (*send)(void *context, uint32_t number, const struct end *from, const struct end *to,
                const uint8_t *bytes, size_t size);
    void (*close)(void *context, uint32_t end);
};

/* A session with what it is about. */
struct proto {
    struct session session;
    struct text out;
    const struct active_io *io;
    uint32_t cookie; /* of this process: packets of others are not taken for ours */
    uint8_t packet[PROBE_MOST_BYTES];
    struct end *end;
    struct pair *pair;
    struct asked *asked; /* a ring: of `asked_count`, from `asked_first` on */
    uint32_t asked_first, asked_count;
    uint64_t asked_last_ns;    /* times do not go back */
    struct flight *flight;     /* a ring, by number */
    uint32_t first, next;      /* numbers of the oldest flight not reported, and of the next one */
    uint64_t skipped, refused; /* since the last report: not sent, and why */
};

/* False: no memory. */
bool active_init(struct proto *p, const struct active_io *io, uint32_t cookie);
void active_free(struct proto *p);

/* A packet of the probes' protocol has come to an end, without its IP header: `size` bytes, of
 * which PROBE_BYTES have to be at `bytes`. What is no probe of ours that is under way from this
 * address to this end is left alone. */
void active_arrived(struct proto *p, uint32_t end, const struct addr *from, const uint8_t *bytes,
                    size_t size, uint64_t at_ns);

/* Both clocks were read together. */
void active_look(struct wall *wall, uint64_t now_ns, uint64_t wall_ns);

/* When a packet arrived that was stamped by the wall clock (0: it was not), if both clocks were
 * read together just now: as long ago on one as on the other, or now where that is not known. */
uint64_t active_arrival(const struct wall *wall, uint64_t now_ns, uint64_t stamp_ns);

/* The verb. Exit code. */
int cmd_active(int argc, char **argv);

#endif
