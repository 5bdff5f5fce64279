/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel holds of the host, and that none of it outlives it. */
#ifndef __TSTORM_LIVES_H
#define __TSTORM_LIVES_H

/*
 * A descriptor of memory without a name, programs in which can run: there is nothing to remove, and no
 * file system with room to be found. Negative where the host refuses it (it is told why, once).
 */
int tstorm_memory(void);

/*
 * In a process that the kernel has started: it ends when the kernel does, be it killed, and at once if
 * it has ended already (which needs tstorm_parent=).
 */
void tstorm_end_with_kernel(void);

/*
 * The signal that ended a process that the kernel has started; 0: it lives, or has ended by itself. Looks for so many
 * milliseconds of the host.
 */
int tstorm_ended_by(int pid, int patience);

/* The same of any of them, which is told once. */
int tstorm_one_ended(int *pid);

/* The end of the guest if it, or any of them, was killed. FAILED: it does not do what it is told. */
void tstorm_demand_alive(int pid, int failed);
void tstorm_demand_all_alive(void);

#endif
