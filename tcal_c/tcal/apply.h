/* From what is in force to the kernels of the ports. */
#ifndef TCAL_APPLY_H
#define TCAL_APPLY_H

#include "change.h"

/* Sends the difference of one port: 0 or the first error. An interface that is not there any more
 * takes no part: what leaves by it is nothing. */
int tcal_send_living(struct tcal *t, struct port *port);
void tcal_say_failure(const struct port *port, int code, struct tcal_error *error);

#endif
