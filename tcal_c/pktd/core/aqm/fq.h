/* fq_codel: flows take turns, and each has a CoDel of its own. */
#ifndef PKTD_FQ_H
#define PKTD_FQ_H

#include "fifo.h"

struct aqm;

/* The packet is held. */
void fq_put(struct aqm *aqm, struct piece *piece);

/* There is too much: the longest flow loses some. */
void fq_shorten(struct aqm *aqm);

/* As codel_take, of the flow whose turn it is. */
struct piece *fq_take(struct aqm *aqm, uint64_t at_ns);

/* Without CoDel. */
struct piece *fq_remove(struct aqm *aqm);

#endif
