/* ICMP echo over a datagram socket where ping_group_range permits, else over a raw socket. */
#ifndef TPROBE_ICMP_H
#define TPROBE_ICMP_H

#include "probe.h"

struct echo {
    int fd;
    bool raw, six;
    uint16_t id;
    struct host peer; /* with port 0 */
};

/* 0, or -1 with errno set and nothing said: the caller may have another way. */
int echo_open(struct echo *p, const struct host *peer);
/* send()'s result for an echo request that carries `payload`. */
ssize_t echo_send(const struct echo *p, uint16_t seq, const void *payload, size_t size);
/* Finds the payload of an echo reply of ours in a received packet; NULL when it is another. */
const unsigned char *echo_payload(const struct echo *p, const unsigned char *packet, size_t size,
                                  size_t *payload_size);

#endif
