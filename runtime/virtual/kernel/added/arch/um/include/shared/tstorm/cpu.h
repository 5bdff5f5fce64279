/* SPDX-License-Identifier: GPL-2.0 */
/* Computing that takes virtual time (cpu.c). */
#ifndef TSTORM_CPU_H
#define TSTORM_CPU_H

/* Virtual nanoseconds that 10^9 of the host's processor time count; 0: none. */
extern unsigned long long tstorm_cpu_ppb;

/* Around a turn of the running program in PID, its process on the host. */
void tstorm_cpu_turn_begins(int pid);
void tstorm_cpu_turn_ends(int pid);

/* Waits until the processor of the running program would have done what it did. Nonzero: it was killed before. */
int tstorm_cpu_settle(void);

/* At the end of a turn that was no system call: the same, if it has become much. */
void tstorm_cpu_settle_much(void);

/*
 * In the handler of the host's SIGALRM: a turn without end is cut, so that time goes on. Nonzero: that was all of it,
 * and it is no interrupt of the guest's.
 */
int tstorm_cpu_cut(void);

static inline void tstorm_cpu_begin(int pid)
{
	if (tstorm_cpu_ppb)
		tstorm_cpu_turn_begins(pid);
}

static inline void tstorm_cpu_end(int pid)
{
	if (tstorm_cpu_ppb)
		tstorm_cpu_turn_ends(pid);
}

static inline int tstorm_cpu_now(void)
{
	return tstorm_cpu_ppb && tstorm_cpu_settle();
}

static inline void tstorm_cpu_much(void)
{
	if (tstorm_cpu_ppb)
		tstorm_cpu_settle_much();
}

static inline int tstorm_cpu_slice(void)
{
	return tstorm_cpu_ppb && tstorm_cpu_cut();
}

/* arch/um/kernel/time.c: virtual time, and going on to UNTIL_NS if nothing at all is due before. */
unsigned long long time_travel_now(void);
int time_travel_pass(unsigned long long until_ns);

/* The host: processor time that PID has used, in ns (0 if there is no such process); a signal every NS. */
unsigned long long tstorm_cpu_of_host(int pid);
void tstorm_cpu_slices(unsigned long long ns);

#endif
