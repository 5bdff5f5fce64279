/* ICMP and ICMPv6 echo (RFC 792, RFC 4443 section 4.1). */
#include "icmp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <netinet/icmp6.h>
#include <string.h>
#include <unistd.h>

enum { ICMP_HEADER = 8, PACKET_ROOM = 65536 };

static uint16_t checksum(const unsigned char *data, size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        sum += (uint32_t)(data[i] << 8 | data[i + 1]);
    }
    if (size % 2) {
        sum += (uint32_t)(data[size - 1] << 8);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

int echo_open(struct echo *p, const struct host *peer) {
    bool six = peer->address.ss_family == AF_INET6;
    int protocol = six ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    *p = (struct echo){.six = six, .id = (uint16_t)(getpid() & 0xffff), .peer = *peer};
    if (six) {
        ((struct sockaddr_in6 *)&p->peer.address)->sin6_port = 0;
    } else {
        ((struct sockaddr_in *)&p->peer.address)->sin_port = 0;
    }
    p->fd = socket(peer->address.ss_family, SOCK_DGRAM | flags, protocol);
    if (p->fd < 0) {
        p->raw = true;
        p->fd = socket(peer->address.ss_family, SOCK_RAW | flags, protocol);
    }
    if (p->fd < 0) {
        return -1;
    }
    socket_buffers(p->fd, 1 << 20);
    const struct sockaddr *to = (const struct sockaddr *)&p->peer.address;
    if (socket_timestamps(p->fd) || (connect(p->fd, to, peer->length) && !unreachable(errno))) {
        int err = errno;
        close(p->fd);
        errno = err;
        return -1;
    }
    return 0;
}

ssize_t echo_send(const struct echo *p, uint16_t seq, const void *payload, size_t size) {
    static unsigned char packet[PACKET_ROOM];
    size_t total = ICMP_HEADER + size;
    if (total > sizeof packet) {
        errno = EMSGSIZE;
        return -1;
    }
    memset(packet, 0, ICMP_HEADER);
    packet[0] = p->six ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
    packet[4] = (unsigned char)(p->id >> 8);
    packet[5] = (unsigned char)(p->id & 0xff);
    packet[6] = (unsigned char)(seq >> 8);
    packet[7] = (unsigned char)(seq & 0xff);
    memcpy(packet + ICMP_HEADER, payload, size);
    if (!p->six) { /* the kernel fills in ICMPv6's, which covers a pseudo-header */
        uint16_t sum = checksum(packet, total);
        packet[2] = (unsigned char)(sum >> 8);
        packet[3] = (unsigned char)(sum & 0xff);
    }
    return host_send(p->fd, &p->peer, packet, total);
}

const unsigned char *echo_payload(const struct echo *p, const unsigned char *packet, size_t size,
                                  size_t *payload_size) {
    size_t skip = 0;
    if (p->raw && !p->six) { /* a raw IPv4 socket delivers the IP header too */
        skip = size ? (size_t)(packet[0] & 0x0f) * 4 : 0;
    }
    if (size < skip + ICMP_HEADER) {
        return NULL;
    }
    const unsigned char *h = packet + skip;
    uint8_t reply = p->six ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY;
    /* A datagram socket has its own id from the kernel and gets only its own replies. */
    if (h[0] != reply || (p->raw && (h[4] << 8 | h[5]) != p->id)) {
        return NULL;
    }
    *payload_size = size - skip - ICMP_HEADER;
    return h + ICMP_HEADER;
}
