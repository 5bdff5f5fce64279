/* From the counters of trees to those of paths, which outlive them. */
#ifndef TCAL_COUNTERS_H
#define TCAL_COUNTERS_H

#include "model.h"

/* Brings a port's counters here: 0 or -errno. */
int tcal_collect(struct tcal *t, struct port *port);

#endif
