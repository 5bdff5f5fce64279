/* SPDX-License-Identifier: GPL-2.0 */
/* Clocks of instances: CLOCK_REALTIME of a network namespace is not the guest's (clocks.c). */
#ifndef TSTORM_CLOCKS_H
#define TSTORM_CLOCKS_H

struct timespec64;
struct hrtimer;

/* Nonzero once a clock is not the guest's. */
extern int tstorm_clocks_differ;

void __tstorm_own_time(struct timespec64 *time);

/* TIME of the guest becomes what the running program's clock says then. */
static inline void tstorm_own_time(struct timespec64 *time)
{
	if (tstorm_clocks_differ)
		__tstorm_own_time(time);
}

/* The running program sets the real-time clock: of its instance alone. 0: it is in none, the guest's is set. */
int tstorm_set_own_clock(const struct timespec64 *time);

/* Nonzero: the running program is in an instance, and has not the guest's clock in its hand. */
int tstorm_has_own_clock(void);

/*
 * TIMER is to expire at this time of the real-time clock, if it is of such: that of the program that starts it.
 * Returns the guest's time then. Only of its first start; later ones know the guest's.
 */
long long tstorm_timer_starts(struct hrtimer *timer, long long expires_ns, int is_relative);

/* fs/timerfd.c: the clock with this number was set. */
void tstorm_timerfd_clock_was_set(unsigned long long clock);

#endif
