/* Serving the protocol on two descriptors. */
#ifndef TCALD_CONTROL_H
#define TCALD_CONTROL_H

#include "tcal/tcal.h"

/* Until `quit` or the end of the commands; then every port is detached. 0 or -errno. `lacks` is
 * what this kernel lacks, or NULL. */
int control_serve(struct tcal *tcal, const char *lacks, int in, int out);

#endif
