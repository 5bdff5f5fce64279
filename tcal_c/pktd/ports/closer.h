/* Closing ports in the background: the kernel takes some 20 ms to remove a device. Control thread.
 */
#ifndef PKTD_CLOSER_H
#define PKTD_CLOSER_H

#include "port.h"

/* Removes the device soon; waits only when many are being removed already. */
void closer_close(struct port *port);

/* Whether a device is being removed now. */
bool closer_busy(void);

/* Waits until all are removed. */
void closer_wait(void);

#endif
