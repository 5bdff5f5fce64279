/* pcapng: a section header, a description of each interface, packets, and at the end what is
 * missing. Numbers have this machine's order of bytes, which the section header tells. Options are
 * code, length, value, padded to 4 bytes.
 */
#include "pcapng.h"

#include <string.h>

#define SECTION_HEADER 0x0A0D0D0Au
#define INTERFACE_DESCRIPTION 1u
#define INTERFACE_STATISTICS 5u
#define ENHANCED_PACKET 6u

#define BYTE_ORDER_MAGIC 0x1A2B3C4Du
#define LINKTYPE_ETHERNET 1u

#define OPTION_END 0u
#define OPTION_COMMENT 1u
#define SECTION_PROGRAM 4u
#define INTERFACE_NAME 2u
#define INTERFACE_RESOLUTION 9u
#define PACKET_DROPCOUNT 4u
#define STATISTICS_RECEIVED 4u
#define STATISTICS_DROPPED 5u
#define NANOSECONDS 9u /* 10^-9 s */

struct block {
    uint8_t *begin;
    uint8_t *end;
};

static void add(struct block *b, const void *bytes, size_t count) {
    memcpy(b->end, bytes, count);
    b->end += count;
}

static void add16(struct block *b, uint32_t value) {
    uint16_t v = (uint16_t)value;
    add(b, &v, sizeof v);
}

static void add32(struct block *b, uint32_t value) {
    add(b, &value, sizeof value);
}

static void add_time(struct block *b, uint64_t at_ns) {
    add32(b, (uint32_t)(at_ns >> 32));
    add32(b, (uint32_t)at_ns);
}

static void pad(struct block *b) {
    while ((b->end - b->begin) % 4) {
        *b->end++ = 0;
    }
}

static struct block open_block(uint8_t *to, uint32_t type) {
    struct block b = {to, to};
    add32(&b, type);
    add32(&b, 0); /* the length, when it is known */
    return b;
}

static size_t close_block(struct block *b) {
    uint32_t length = (uint32_t)(b->end - b->begin) + 4;
    add32(b, length);
    memcpy(b->begin + 4, &length, sizeof length);
    return length;
}

static void add_option(struct block *b, uint32_t code, const void *value, size_t count) {
    add16(b, code);
    add16(b, (uint32_t)count);
    add(b, value, count);
    pad(b);
}

static void end_options(struct block *b) {
    add32(b, OPTION_END);
}

size_t pcapng_section(uint8_t *to, const char *program) {
    struct block b = open_block(to, SECTION_HEADER);
    add32(&b, BYTE_ORDER_MAGIC);
    add16(&b, 1);
    add16(&b, 0);
    add32(&b, UINT32_MAX); /* how long the section is stays open */
    add32(&b, UINT32_MAX);
    add_option(&b, SECTION_PROGRAM, program, strlen(program));
    end_options(&b);
    return close_block(&b);
}

size_t pcapng_interface(uint8_t *to, const char *name) {
    struct block b = open_block(to, INTERFACE_DESCRIPTION);
    const uint8_t resolution = NANOSECONDS;
    add16(&b, LINKTYPE_ETHERNET);
    add16(&b, 0);
    add32(&b, 0); /* no limit to what is kept of a packet */
    add_option(&b, INTERFACE_NAME, name, strlen(name));
    add_option(&b, INTERFACE_RESOLUTION, &resolution, 1);
    end_options(&b);
    return close_block(&b);
}

size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *packet) {
    struct block b = open_block(to, ENHANCED_PACKET);
    uint32_t length = (uint32_t)(packet->count[0] + packet->count[1]);
    add32(&b, packet->interface);
    add_time(&b, packet->at_ns);
    add32(&b, length);
    add32(&b, length);
    for (int i = 0; i < 2; i++) {
        if (packet->count[i]) {
            add(&b, packet->bytes[i], packet->count[i]);
        }
    }
    pad(&b);
    if (packet->comment) {
        add_option(&b, OPTION_COMMENT, packet->comment, strlen(packet->comment));
    }
    if (packet->dropcount) {
        add_option(&b, PACKET_DROPCOUNT, &packet->dropcount, sizeof packet->dropcount);
    }
    if (packet->comment || packet->dropcount) {
        end_options(&b);
    }
    return close_block(&b);
}

size_t pcapng_statistics(uint8_t *to, uint32_t interface, uint64_t at_ns, uint64_t written,
                         uint64_t missing) {
    struct block b = open_block(to, INTERFACE_STATISTICS);
    add32(&b, interface);
    add_time(&b, at_ns);
    uint64_t received = written + missing;
    add_option(&b, STATISTICS_RECEIVED, &received, sizeof received);
    add_option(&b, STATISTICS_DROPPED, &missing, sizeof missing);
    end_options(&b);
    return close_block(&b);
}
