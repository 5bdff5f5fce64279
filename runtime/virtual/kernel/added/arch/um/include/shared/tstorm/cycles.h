/* SPDX-License-Identifier: GPL-2.0 */
/* The instructions that would show a program the host's clock and processor (cycles.c). */
#ifndef TSTORM_CYCLES_H
#define TSTORM_CYCLES_H

struct uml_pt_regs;

/*
 * A trap that is no page fault: nonzero if it was a program's on rdtsc, rdtscp or cpuid, which REGS are then behind,
 * or the kernel's own that need not come again.
 */
int tstorm_emulate(struct uml_pt_regs *regs);

#endif
