/* What tprobe's two ends say to each other. Both are the same build on machines of one byte order
 * (a run is one machine, or a cluster of one architecture); WIRE_MAGIC differs otherwise, and then
 * the message is ignored.
 */
#ifndef TPROBE_WIRE_H
#define TPROBE_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC UINT32_C(0x54505232) /* "TPR2" */

/* A run's own probes, whose losses pktd draws apart from those of programs (docs/probes.md). */
#define PROBE_PROTOCOL 253              /* IP's, for experiments (RFC 3692): tprobe active */
#define PROBE_ECHO UINT32_C(0x54505045) /* instead of WIRE_MAGIC: tprobe rtt --probe */

enum wire_kind {
    WIRE_ECHO = 1,   /* datagram: send it back as it is */
    WIRE_DATA = 2,   /* datagram: count it in its session */
    WIRE_ASK = 3,    /* datagram: answer with the session's struct wire_report */
    WIRE_REPORT = 4, /* that answer */
    WIRE_SINK = 5,   /* first bytes of a connection: count what follows, report after end of file */
    WIRE_SOURCE = 6, /* first bytes of a connection: send until the other end closes */
};

/* In front of every datagram and at the start of every connection: 32 bytes. */
struct wire_header {
    uint32_t magic;
    uint16_t kind;
    uint16_t reserved;
    uint32_t session;
    uint32_t seq;
    int64_t sent_ns; /* the sender's clock: what it is good for is the sender's business */
    int64_t skip_ns; /* connections: leave the first so many ns out of the report's rate */
};

/* What the receiving end saw. A datagram WIRE_ASK has this size too, so that an answer is never
 * larger than the question (no amplification). */
struct wire_report {
    struct wire_header header;
    uint64_t packets, bytes; /* everything; bytes of payload */
    /* Between the first and the last arrival after skip_ns: bytes that arrived in (first, last]. */
    int64_t first_ns, last_ns;
    uint64_t span_bytes, span_packets;
};

#endif
