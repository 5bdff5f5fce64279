// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel holds of the host: memory, and processes. All of it goes when the kernel's main
 * process goes, however it does, and that goes when the process does that started it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <init.h>
#include <os.h>
#include <tstorm/lives.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static int kernel_pid;

static int executable(int fd)
{
	void *page;

	if (ftruncate(fd, UM_KERN_PAGE_SIZE) < 0)
		return 0;
	page = mmap(NULL, UM_KERN_PAGE_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 0;
	munmap(page, UM_KERN_PAGE_SIZE);
	return ftruncate(fd, 0) == 0;
}

int tstorm_memory(void)
{
	static int told;
	int fd = memfd_create("tstorm-guest", MFD_CLOEXEC | MFD_EXEC);

	/* before Linux 6.3 each may hold programs, and the flag is unknown */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("tstorm-guest", MFD_CLOEXEC);
	if (fd >= 0 && executable(fd))
		return fd;
	if (!told++)
		os_warn("The host gives no memory to run programs in (%s; see vm.memfd_noexec): "
			"taking a file instead\n", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

void tstorm_end_with_kernel(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have ended before that. The C library would answer from memory. */
	if (kernel_pid && syscall(SYS_getppid) != kernel_pid)
		syscall(SYS_exit_group, 1);
}

static int number_of(const siginfo_t *found)
{
	return found->si_pid && found->si_code != CLD_EXITED ? found->si_status : 0;
}

int tstorm_ended_by(int pid, int patience)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };
	siginfo_t found = { .si_pid = 0 };

	while (1) {
		/* Who is not there any more was waited for a moment ago: nothing but SIGKILL ends these. */
		if (waitid(P_PID, pid, &found, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
			return errno == ECHILD ? SIGKILL : 0;
		if (found.si_pid || !patience--)
			return number_of(&found);
		nanosleep(&pause, NULL);
	}
}

static volatile sig_atomic_t some_ended;

static void note_end(int number)
{
	some_ended = 1;
}

/* Those that the kernel has killed itself it has waited for. */
int tstorm_one_ended(int *pid)
{
	siginfo_t found = { .si_pid = 0 };

	if (!some_ended)
		return 0;
	some_ended = 0;
	if (waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return 0;
	*pid = found.si_pid;
	return number_of(&found);
}

/* Newer kernels hear of it themselves where they have to (seccomp). */
static int __init hear_of_ends(void)
{
	struct sigaction now, ours = { .sa_handler = note_end, .sa_flags = SA_NOCLDSTOP | SA_RESTART };

	if (sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(SIGCHLD, &ours, NULL);
	return 0;
}
__initcall(hear_of_ends);

static int __init parent_setup(char *argument, int *add)
{
	char *end;
	long parent = strtol(argument, &end, 10);

	*add = 0;
	if (end == argument || *end || parent <= 0) {
		os_warn("tstorm_parent=%s: the number of a process is needed\n", argument);
		exit(1);
	}
	kernel_pid = os_getpid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (syscall(SYS_getppid) != parent) {
		os_warn("tstorm_parent=%s: that process has not started this one, or has ended\n",
			argument);
		exit(1);
	}
	return 1;
}

__uml_setup("tstorm_parent=", parent_setup,
"tstorm_parent=PID\n"
"    End as if killed when the process (the thread of it) that started this one\n"
"    ends; it is PID, which is checked.\n\n");
