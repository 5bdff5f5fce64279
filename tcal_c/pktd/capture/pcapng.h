/* Blocks of a pcapng file (IETF draft-ietf-opsawg-pcapng), as bytes in a buffer. */
#ifndef PKTD_PCAPNG_H
#define PKTD_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define PCAPNG_NAME_LIMIT 255u

/* Room that a block without its packet takes at most. */
#define PCAPNG_BLOCK_LIMIT 512u

/* Each writes one block and returns its length, a multiple of 4. Times are ns since 1970. */
size_t pcapng_section(uint8_t *to, const char *program);
size_t pcapng_interface(uint8_t *to, const char *name); /* Ethernet, ns */

struct pcapng_packet {
    uint32_t interface; /* counted from 0 in the file */
    uint64_t at_ns;
    uint64_t dropcount;  /* packets of this interface that are missing before it */
    const char *comment; /* NULL: none */
    const uint8_t *bytes[2];
    size_t count[2];
};

/* `to` has room for the packet and PCAPNG_BLOCK_LIMIT. */
size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *packet);

/* The last block of an interface: how many packets of it are in the file, and how many missing. */
size_t pcapng_statistics(uint8_t *to, uint32_t interface, uint64_t at_ns, uint64_t written,
                         uint64_t missing);

#endif
