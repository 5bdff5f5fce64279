/* SPDX-License-Identifier: GPL-2.0 */
/* Programs lose the processor inside computing (preempt.c). */
#ifndef TSTORM_PREEMPT_H
#define TSTORM_PREEMPT_H

#include <linux/sched.h>

extern unsigned long long tstorm_preempt_ns; /* 0: they do not */

/* Of what the inlines below ask, where it is asked for. */
void tstorm_preempt_after_call(int woken);
void tstorm_preempt_after_fault(struct vm_area_struct *vma);
void tstorm_preempt_program(void);
int tstorm_preempt_may_step(void);

/* The running program is at the end of a system call, in which it slept if WOKEN. */
static inline void tstorm_preempt_call(int woken)
{
	if (tstorm_preempt_ns)
		tstorm_preempt_after_call(woken);
}

/* It was given a page of VMA that it had touched. */
static inline void tstorm_preempt_fault(struct vm_area_struct *vma)
{
	if (tstorm_preempt_ns)
		tstorm_preempt_after_fault(vma);
}

/* It is about to go on, from wherever it was. It may sleep here. */
static inline void tstorm_preempt(void)
{
	if (current->thread.preempt_after == 1)
		tstorm_preempt_program();
}

/* Whether it is to come back after one instruction. */
static inline int tstorm_preempt_steps(void)
{
	return current->thread.preempt_after > 1 && tstorm_preempt_may_step();
}

/* It came back with SIGTRAP, for the reason CODE. Nonzero: that was for us, and it is not to see the signal. */
int tstorm_preempt_stepped(int code);

#endif
