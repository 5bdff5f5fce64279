/*
 * clocks wait         loops for each clock until it goes on, as programs do that calibrate timers, and names those
 *                     that stand still
 * clocks fail N       fails N times in a row: prints how many ns of the clock that took
 * clocks attach N     loops without a call until a process that has just started has looked at a clock N times
 * clocks late N       wakes up N times, each millisecond: prints by how many ns it was late at most
 * clocks reserve GIB  reserves so much of its addresses: ends with 0 if it has them
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000 /* readings: 10 ms of looks are 40,000 */

static clockid_t asked;

static long long of_clock(void)
{
	struct timespec now;

	clock_gettime(asked, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static long long of_day(void)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	return now.tv_sec * 1000000ll + now.tv_usec;
}

static long long of_times(void)
{
	return times(NULL);
}

static long long of_usage(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_utime.tv_sec * 1000000ll + used.ru_utime.tv_usec;
}

static void wait_for(const char *name, long long (*read)(void))
{
	long long first = read();
	int i;

	for (i = 0; i < MOST && read() == first; i++)
		;
	if (i == MOST)
		printf("%s stands still\n", name);
}

static void wait_for_all(void)
{
	static const struct {
		const char *name;
		clockid_t clock;
	} clocks[] = {
		{"realtime", CLOCK_REALTIME}, {"monotonic", CLOCK_MONOTONIC},
		{"raw", CLOCK_MONOTONIC_RAW}, {"boottime", CLOCK_BOOTTIME},
		{"realtime coarse", CLOCK_REALTIME_COARSE}, {"monotonic coarse", CLOCK_MONOTONIC_COARSE},
		{"process", CLOCK_PROCESS_CPUTIME_ID}, {"thread", CLOCK_THREAD_CPUTIME_ID},
	};
	size_t i;

	for (i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		asked = clocks[i].clock;
		wait_for(clocks[i].name, of_clock);
	}
	wait_for("gettimeofday", of_day);
	wait_for("times", of_times);
	wait_for("getrusage", of_usage);
	puts("asked all");
}

/* The worker could run before the leader is woken, as PostgreSQL's parallel workers can. */
static void attach(int looks)
{
	volatile int *attached = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int started[2];

	asked = CLOCK_MONOTONIC;
	if (attached == MAP_FAILED || pipe(started))
		exit(1);
	if (!fork()) {
		if (fork()) {
			write(started[1], "", 1);
			wait(NULL);
		} else {
			while (looks--)
				of_clock();
			*attached = 1;
		}
		_exit(0);
	}
	read(started[0], (char[1]){0}, 1);
	while (!*attached)
		;
	wait(NULL);
	puts("attached");
}

static void late(int count)
{
	struct timespec next;
	long long most = 0, at;
	int i;

	prctl(PR_SET_TIMERSLACK, 1);
	clock_gettime(CLOCK_MONOTONIC, &next);
	asked = CLOCK_MONOTONIC;
	for (i = 0; i < count; i++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		at = of_clock() - (next.tv_sec * 1000000000ll + next.tv_nsec);
		most = at > most ? at : most;
	}
	printf("%lld\n", most);
}

int main(int argc, char **argv)
{
	long number = argc > 2 ? atol(argv[2]) : 0;
	long long began;

	if (argc == 2 && !strcmp(argv[1], "wait")) {
		wait_for_all();
	} else if (argc == 3 && !strcmp(argv[1], "fail")) {
		asked = CLOCK_MONOTONIC;
		began = of_clock();
		while (number--)
			close(-1);
		printf("%lld\n", of_clock() - began);
	} else if (argc == 3 && !strcmp(argv[1], "attach")) {
		attach(number);
	} else if (argc == 3 && !strcmp(argv[1], "late")) {
		late(number);
	} else if (argc == 3 && !strcmp(argv[1], "reserve")) {
		return mmap(NULL, (size_t)number << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			    0) == MAP_FAILED;
	} else {
		return 2;
	}
	return 0;
}
