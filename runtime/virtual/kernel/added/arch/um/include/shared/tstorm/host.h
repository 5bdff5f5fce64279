/* SPDX-License-Identifier: GPL-2.0 */
/* What is asked of the host (host_user.c). */
#ifndef TSTORM_HOST_H
#define TSTORM_HOST_H

/* Starts the kernel again without randomised addresses, where it has them. Returns 0, or -errno if it cannot. */
int tstorm_fix_addresses(void);

/* What the guest's programs would feel of how the kernel was started: creation mask, number of open files. */
void tstorm_fix_limits(void);

/* Nonzero: a process of this host can be made to trap on the cycle counter, on cpuid. */
int tstorm_can_trap_cycles(void);
int tstorm_can_trap_cpuid(void);

/* The calling host process traps on both from now on, as far as it can. */
void tstorm_trap_instructions(void);

/*
 * So does the kernel itself, although it has no need: where the processes that take turns differ in this, each turn
 * costs the host a change of a control register, which a virtual machine pays dearly. Undoing it returns 0 if it was
 * not so.
 */
void tstorm_trap_kernel(void);
int tstorm_untrap_kernel(void);

/* What the instruction cpuid gives; eax and ecx as given. */
void tstorm_cpuid(unsigned int *eax, unsigned int *ebx, unsigned int *ecx, unsigned int *edx);

#endif
