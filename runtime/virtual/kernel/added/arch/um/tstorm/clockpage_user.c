// SPDX-License-Identifier: GPL-2.0
/*
 * The host's side of the clock page: mapping it, and waiting for the host.
 *
 * No wake-up is lost: a wait reads the futex word, then looks whether there is reason not to wait
 * (a signal that is pending, a limit that allows the jump), then sleeps only while the word is what
 * it was. Whoever gives a reason changes the word afterwards. A handler that runs during the sleep
 * makes the host's kernel start the system call again (SA_RESTART), which then sees the new word.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>
#include <init.h>
#include <kern_util.h>
#include <os.h>
#include <tstorm/clockpage.h>

struct clockpage *clockpage;

static void tell(unsigned int state)
{
	__atomic_store_n(&clockpage->state, state, __ATOMIC_SEQ_CST);
	if (clockpage->watch)
		syscall(SYS_futex, &clockpage->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int allowed(unsigned long long next_ns)
{
	return next_ns < LLONG_MAX &&
	       next_ns <= __atomic_load_n(&clockpage->limit_ns, __ATOMIC_SEQ_CST);
}

int __clockpage_wait(unsigned long long next_ns)
{
	int signal, waits = 0;

	clockpage->next_ns = next_ns < LLONG_MAX ? next_ns : CLOCKPAGE_NEVER;
	while (1) {
		unsigned int wake = __atomic_load_n(&clockpage->wake, __ATOMIC_SEQ_CST);

		signal = um_signals_pending();
		if (signal || allowed(next_ns))
			break;
		if (!waits++) {
			clockpage->waits++;
			tell(CLOCKPAGE_WAITS);
		}
		syscall(SYS_futex, &clockpage->wake, FUTEX_WAIT, wake, NULL, NULL, 0);
	}
	if (waits)
		__atomic_store_n(&clockpage->state, CLOCKPAGE_RUNS, __ATOMIC_SEQ_CST);
	if (!signal)
		clockpage->jumps++;
	return signal;
}

unsigned long long __clockpage_creep(unsigned long long now_ns)
{
	unsigned long long ns, limit_ns = clockpage->limit_ns;

	if (!clockpage->creep_ns)
		return 0;
	ns = __atomic_exchange_n(&clockpage->creep_ns, 0, __ATOMIC_SEQ_CST);
	if (limit_ns <= now_ns)
		return 0;
	return ns < limit_ns - now_ns ? ns : limit_ns - now_ns;
}

int __clockpage_free(unsigned long long end_ns)
{
	unsigned long long turns = __atomic_load_n(&clockpage->free_turns, __ATOMIC_SEQ_CST);

	if (end_ns <= __atomic_load_n(&clockpage->limit_ns, __ATOMIC_SEQ_CST))
		return 0;
	while (turns && !__atomic_compare_exchange_n(&clockpage->free_turns, &turns, turns - 1, 0, __ATOMIC_SEQ_CST,
						     __ATOMIC_SEQ_CST))
		;
	return turns > 0;
}

static void clockpage_end(void)
{
	if (clockpage)
		tell(CLOCKPAGE_ENDED);
}
__uml_exitcall(clockpage_end);

static void __init refuse(const char *argument, const char *why)
{
	os_warn("tstorm_page=%s: %s\n", argument, why);
	exit(1);
}

static int __init clockpage_setup(char *argument, int *add)
{
	struct clockpage *page;
	char *end = argument;
	long fd = -1;

	*add = 0;
	if (!strncmp(argument, "fd:", 3))
		fd = strtol(argument + 3, &end, 10);
	if (end == argument || *end || fd < 0)
		refuse(argument, "fd:N is needed, the number of an open descriptor");
	page = mmap(NULL, CLOCKPAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		refuse(argument, strerror(errno));
	if (page->magic != CLOCKPAGE_MAGIC)
		refuse(argument, "this is no clock page");
	if (page->version != CLOCKPAGE_VERSION)
		refuse(argument, "another version of the clock page than this kernel's: build the "
				 "kernel anew with `tstorm kernel build`");
	clockpage = page;
	tell(CLOCKPAGE_RUNS);
	return 1;
}

__uml_setup("tstorm_page=", clockpage_setup,
"tstorm_page=fd:N\n"
"    Share what time it is, and how far it may go, with the host in the page\n"
"    that descriptor N stands for (<tstorm/clockpage.h>).\n\n");
