/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock page: 4096 bytes that this kernel shares with the process of the host that started it
 * (tstorm_page=fd:N). The kernel tells what time it is and who runs; the host says how far time may
 * go. One writer a field, little endian. runtime/virtual/clockpage.py mirrors this file: a change of
 * what stands here is a new CLOCKPAGE_VERSION in both.
 */
#ifndef __TSTORM_CLOCKPAGE_H
#define __TSTORM_CLOCKPAGE_H

#define CLOCKPAGE_MAGIC 0x47505354 /* "TSPG" */
#define CLOCKPAGE_VERSION 2
#define CLOCKPAGE_BYTES 4096
#define CLOCKPAGE_NEVER (~0ULL)

enum { CLOCKPAGE_BOOTS, CLOCKPAGE_RUNS, CLOCKPAGE_WAITS, CLOCKPAGE_ENDED };

struct clockpage {
	/* the host, before the kernel starts */
	unsigned int magic, version;

	/* the kernel */
	unsigned long long now_ns; /* virtual time since its start */
	unsigned long long next_ns; /* the event that it last wanted to go to; NEVER: there is none */
	unsigned int state; /* CLOCKPAGE_…, a futex: see `watch` */
	int pid; /* of the program that runs or ran last, as the first PID namespace counts */
	char comm[16]; /* its name */
	unsigned long long switches; /* from task to task */
	unsigned long long syscalls; /* of programs */
	unsigned long long jumps; /* over time in which nothing happened */
	unsigned long long waits; /* for the host */
	unsigned long long crept_ns; /* time that went on because the host said so */
	unsigned char more_of_the_kernel[1960];

	/* the host; from byte 2048 on */
	unsigned long long limit_ns; /* beyond this the kernel does not jump; NEVER: no limit */
	/*
	 * The futex that a waiting kernel sleeps on. Each side counts up its own half when it has
	 * something to tell: the host's half after each change of limit_ns, the kernel's for a
	 * signal. So a half has one writer, and neither can undo what the other wrote.
	 */
	union {
		unsigned int wake;
		struct {
			unsigned short wake_signal, wake_host;
		};
	};
	unsigned int watch; /* not 0: wake who sleeps on `state` when it changes to WAITS or ENDED */
	unsigned long long creep_ns; /* with SIGALRM: go on by so much. The kernel puts 0 here. */
	/*
	 * How many times what a program does may take no time where time stands still, instead of waiting for ever. The
	 * kernel counts it down.
	 */
	unsigned long long free_turns;
	unsigned char more_of_the_host[2016];
};

_Static_assert(sizeof(struct clockpage) == CLOCKPAGE_BYTES, "the clock page is one page");

/* NULL without tstorm_page= */
extern struct clockpage *clockpage;

/*
 * With interrupts off, before the jump to the next event at next_ns (S64_MAX or more: there is none):
 * in idle, or where the one program that runs lets time pass. Waits until the host allows it. True: a signal came, its interrupt is to be handled first
 * and there must be no jump.
 */
int __clockpage_wait(unsigned long long next_ns);

/* What the host wants time to go on by, once; 0 mostly. */
unsigned long long __clockpage_creep(unsigned long long now_ns);

/* Whether time stands still before end_ns, and what takes until then is free of charge. */
int __clockpage_free(unsigned long long end_ns);

static inline int clockpage_free(unsigned long long end_ns)
{
	return clockpage && __clockpage_free(end_ns);
}

static inline int clockpage_wait(unsigned long long next_ns)
{
	return clockpage && __clockpage_wait(next_ns);
}

static inline unsigned long long clockpage_creep(unsigned long long now_ns)
{
	return clockpage ? __clockpage_creep(now_ns) : 0;
}

static inline void clockpage_time(unsigned long long now_ns)
{
	if (clockpage)
		clockpage->now_ns = now_ns;
}

static inline void clockpage_syscall(void)
{
	if (clockpage)
		clockpage->syscalls++;
}

/* In the handler of every signal: a wait that has begun, or is about to, ends. */
static inline void clockpage_signal(void)
{
	if (clockpage)
		clockpage->wake_signal++;
}

struct task_struct;

void __clockpage_switched(struct task_struct *to);

static inline void clockpage_switched(struct task_struct *to)
{
	if (clockpage)
		__clockpage_switched(to);
}

/* arch/um/os-Linux/signal.c: signals that came while interrupts were off */
int um_signals_pending(void);

#endif
