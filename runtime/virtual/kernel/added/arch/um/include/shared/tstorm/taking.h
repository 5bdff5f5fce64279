/* SPDX-License-Identifier: GPL-2.0 */
/* What takes a program time although nothing in it sleeps (taking.c). */
#ifndef TSTORM_TAKING_H
#define TSTORM_TAKING_H

/* The running program sleeps until then; nobody else's time goes on for it. */
void tstorm_wait_until(unsigned long long end_ns);

/* It waits until who was killed for the memory that it needs has had a turn. */
void tstorm_let_go(void);

/* It has the processor's time for NS on its account, as it finds that with times(2) and in /proc. */
void tstorm_account(unsigned long long ns);

/* It looks at a clock. */
void tstorm_look(void);

/* The same, if system call NUMBER does that. */
void tstorm_look_by_call(int number);

/* No program runs or could run. */
void tstorm_all_sleep(void);

/* In a call, the kernel itself looks at the clock. Nonzero: that is on the program's account, and time stays. */
int tstorm_look_in_call(void);

/* At the end of a system call, which has failed if FAILED. */
void tstorm_call_ends(int failed);

#endif
