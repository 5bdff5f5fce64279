/* Scheduling for a thread that has to be quick and has no real-time priority. */
#ifndef COMMON_PREFER_H
#define COMMON_PREFER_H

#include <stdbool.h>

/* The calling thread is scheduled as ordinary ones, with this nice value and a short time slice,
 * which since Linux 6.12 makes the scheduler pick it earlier when it wakes; older kernels ignore
 * that. Whom it forks is scheduled like it if `inherited`. -1 with errno if it is not permitted. */
int ask_for_short_slices(int nice, bool inherited);

/* The calling thread is preferred to others as far as the machine permits. */
void be_preferred(void);

#endif
