/* Which packets a link has carried and lost, in what order and when, as one number of 64 bits. */
#ifndef PKTD_DIGEST_H
#define PKTD_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* What becomes of a packet on a link. */
enum fate { FATE_LEFT, FATE_QUEUE, FATE_LOSS, FATE_DOWN };

/* The hash of a packet's bytes at layer 3. */
uint64_t digest_contents(const void *packet, size_t bytes);

/* The digest of a link after one more piece: segments [first, first + count) of a packet, of which
 * there are no more than 65,535, had this fate at `time_ns`. That of a link without packets is 0.
 */
uint64_t digest_add(uint64_t digest, uint64_t time_ns, enum fate fate, uint32_t first,
                    uint32_t count, uint64_t contents);

#endif
