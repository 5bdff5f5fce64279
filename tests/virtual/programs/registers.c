/*
 * Vector registers and their modes over system calls, signals, faults, threads, fork, vfork and exec.
 * Says what was wrong, and how much; ends with 1 then. Needs a processor with AVX.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200
#define REGISTERS 16
#define BYTES (REGISTERS * 32)
#define USED                                                                                       \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",   \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define LOAD(n) "vmovdqu " #n "*32(%[in]), %%ymm" #n "\n"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%[out])\n"
#define ALL(f)                                                                                     \
	f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)

static const unsigned short X87 = 0x037f; /* as a program begins */
static const unsigned int SSE = 0x1f80;

static int wrong, signals;

/* A pattern in all registers and a rounding mode of its own over a call: how much is not as it was. */
static int over_call(int seed, long number, long a, long b, long c)
{
	unsigned char in[BYTES], out[BYTES];
	unsigned short x87 = X87 | (seed & 3) << 10, x87_after;
	unsigned int sse = SSE | (seed & 3) << 13, sse_after;
	int i, bad = 0;

	for (i = 0; i < BYTES; i++)
		in[i] = seed * 31 + i * 7;
	asm volatile("fldcw %[x87]\n ldmxcsr %[sse]\n" ALL(LOAD)
		     "mov %[n], %%rax\n mov %[a], %%rdi\n mov %[b], %%rsi\n mov %[c], %%rdx\n"
		     "xor %%r10, %%r10\n syscall\n" ALL(STORE)
		     "fnstcw %[x87_after]\n stmxcsr %[sse_after]\n"
		     "fldcw %[X87]\n ldmxcsr %[SSE]\n"
		     : [x87_after] "=m"(x87_after), [sse_after] "=m"(sse_after)
		     : [x87] "m"(x87), [sse] "m"(sse), [in] "r"(in), [out] "r"(out),
		       [n] "m"(number), [a] "m"(a), [b] "m"(b), [c] "m"(c), [X87] "m"(X87),
		       [SSE] "m"(SSE)
		     : "rax", "rdi", "rsi", "rdx", "r10", "rcx", "r11", "memory", USED);
	for (i = 0; i < BYTES; i++)
		bad += in[i] != out[i];
	return bad + (x87 != x87_after) + ((sse & 0xffc0) != (sse_after & 0xffc0));
}

static void on_signal(int number)
{
	(void)number;
	__atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST);
	over_call(0x55, SYS_getppid, 0, 0, 0);
	asm volatile("vzeroall" ::: "memory", USED);
}

static void *calls(void *argument)
{
	int seed = (long)argument, bad = 0, round;

	for (round = seed; round < seed + ROUNDS; round++) {
		struct timespec nap = { 0, 1000 * (1 + seed % 7) };
		char *fresh = malloc(1 << 20);

		fresh[round * 100] = 1; /* a fault */
		bad += over_call(round, SYS_getppid, 0, 0, 0);
		bad += over_call(round, SYS_sched_yield, 0, 0, 0);
		bad += over_call(round, SYS_nanosleep, (long)&nap, 0, 0);
		bad += over_call(round, SYS_tgkill, getpid(), gettid(), SIGUSR1);
		free(fresh);
	}
	__atomic_add_fetch(&wrong, bad, __ATOMIC_SEQ_CST);
	return NULL;
}

static int ended_badly(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) != pid || status != 0;
}

/* A child by fork has what its parent had; both keep their own from then on. */
static int forks(void)
{
	volatile int round, bad = 0;

	for (round = 0; round < 20; round++) {
		unsigned char in[32], out[32];
		long pid;

		memset(in, 7 + round, sizeof(in));
		asm volatile("vmovdqu %[in], %%ymm9\n syscall\n vmovdqu %%ymm9, %[out]\n"
			     : "=a"(pid), [out] "=m"(out)
			     : "0"(SYS_fork), [in] "m"(in)
			     : "rcx", "r11", "memory", USED);
		bad += memcmp(in, out, sizeof(in)) != 0;
		if (pid == 0)
			_exit(bad || over_call(round, SYS_getppid, 0, 0, 0));
		bad += ended_badly(pid);
	}
	return bad;
}

/* A new program finds registers as they are at the beginning, and leaves its parent's alone. */
static int programs(void)
{
	volatile int round, bad = 0;

	for (round = 0; round < 20; round++) {
		pid_t pid;

		bad += over_call(round, SYS_getppid, 0, 0, 0);
		pid = round & 1 ? fork() : vfork();
		if (pid == 0) {
			execl("/proc/self/exe", "registers", "new", NULL);
			_exit(9);
		}
		bad += over_call(round + 3, SYS_getppid, 0, 0, 0);
		bad += ended_badly(pid);
	}
	return bad;
}

static int as_at_the_beginning(void)
{
	unsigned short x87;
	unsigned int sse;

	asm volatile("fnstcw %0\n stmxcsr %1" : "=m"(x87), "=m"(sse));
	return x87 == X87 && sse == SSE;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	int i, others = 0, in_forks, in_programs;
	pthread_t threads[3];
	pid_t children[2];

	(void)argv;
	if (argc > 1)
		return !as_at_the_beginning();
	sigaction(SIGUSR1, &action, NULL);
	for (i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			calls((void *)(long)(100 + i));
			_exit(wrong != 0);
		}
	}
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, calls, (void *)(long)(11 * i + 1));
	calls((void *)50L);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < 2; i++)
		others += ended_badly(children[i]);
	in_forks = forks();
	in_programs = programs();
	printf("wrong: %d in threads, %d processes, %d in forks, %d in programs; signals: %d\n", wrong,
	       others, in_forks, in_programs, signals);
	return wrong || others || in_forks || in_programs || signals != 4 * ROUNDS;
}
