/* SPDX-License-Identifier: GPL-2.0 */
/* Seeded perturbation of scheduling (scatter.c). */
#ifndef TSTORM_SCATTER_H
#define TSTORM_SCATTER_H

extern unsigned long long tstorm_scatter_ns; /* 0: none */

/* The running program has exact timers, or there is no seed: it is left alone. */
int tstorm_is_exact(void);

/* It sleeps for NS, whatever it is about; only its end ends that earlier. */
void tstorm_pause(unsigned long long ns);

/* It is at the end of a system call, in which it slept if WOKEN. */
void tstorm_scatter_program(int woken);

static inline void tstorm_scatter(int woken)
{
	if (tstorm_scatter_ns)
		tstorm_scatter_program(woken);
}

#endif
