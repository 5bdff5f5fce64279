/* Frames as a port would read them. */
#ifndef TESTS_FRAMES_H
#define TESTS_FRAMES_H

#include "pktd/core/packets/packet.h"

struct test_frame {
    struct virtio_net_hdr vnet;
    size_t bytes; /* of the Ethernet frame */
    uint8_t data[70000];
};

enum { TEST_UDP = 17, TEST_TCP = 6 };

/* From node `source` to node `dest` (10.77.0.node+1 or fd77:7473::node+1), payload counting up.
 * `segment` is the payload of one segment of a super-packet, 0 for an ordinary packet. */
void make_frame(struct test_frame *f, int version, int protocol, unsigned source, unsigned dest,
                size_t payload, unsigned segment);

/* An ordinary IPv4 UDP packet of `bytes` bytes at layer 3. */
void make_packet(struct test_frame *f, unsigned source, unsigned dest, size_t bytes);

/* Verifies every checksum of a delivered frame, completing a partial one first; without `vnet` none
 * is partial. */
void check_sums(const struct virtio_net_hdr *vnet, uint8_t *frame, size_t bytes);

#endif
