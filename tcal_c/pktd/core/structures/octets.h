/* Numbers in packets, and the Internet checksum (RFC 1071). */
#ifndef PKTD_OCTETS_H
#define PKTD_OCTETS_H

#include <stddef.h>
#include <stdint.h>

static inline uint16_t get16(const uint8_t *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline void put16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline uint32_t get32(const uint8_t *p) {
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static inline void put32(uint8_t *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xFFFF);
}

/* Of at most 64 KiB, added to `sum`. */
static inline uint32_t sum16(const uint8_t *p, size_t bytes, uint32_t sum) {
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        sum += get16(p + i);
    }
    return bytes % 2 ? sum + ((uint32_t)p[bytes - 1] << 8) : sum;
}

static inline uint16_t fold(uint32_t sum) {
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)sum;
}

/* The checksum of an IPv4 header in which 16 bits have become others (RFC 1624, equation 3). */
static inline void resum16(uint8_t *ip, uint16_t before, uint16_t now) {
    put16(ip + 10, (uint16_t)~fold((uint16_t)~get16(ip + 10) + (uint32_t)(uint16_t)~before + now));
}

#endif
