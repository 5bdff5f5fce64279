// SPDX-License-Identifier: GPL-2.0
/* What is asked of the host, through its C library. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cpuid.h>
#include <tstorm/host.h>

#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID 0x1012
#endif

#define MOST_ARGUMENTS 1024
#define MOST_TEXT 65536

extern char **environ;

/* The command line as it was given: the kernel may have changed what main() got. Returns 0 or -errno. */
static int read_arguments(char *text, char **arguments)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), count = 0;
	ssize_t length = 0, part;
	char *at;

	if (fd < 0)
		return -errno;
	while ((part = read(fd, text + length, MOST_TEXT - length)) > 0)
		length += part;
	close(fd);
	if (part < 0)
		return -EIO;
	if (length == MOST_TEXT)
		return -E2BIG;
	for (at = text; at < text + length && count < MOST_ARGUMENTS; at += strlen(at) + 1)
		arguments[count++] = at;
	if (count == MOST_ARGUMENTS)
		return -E2BIG;
	arguments[count] = NULL;
	return 0;
}

int tstorm_fix_addresses(void)
{
	static char text[MOST_TEXT];
	static char *arguments[MOST_ARGUMENTS + 1];
	int now = personality(0xffffffff), err;

	if (now >= 0 && now & ADDR_NO_RANDOMIZE)
		return 0;
	if (now < 0 || personality(now | ADDR_NO_RANDOMIZE) < 0)
		return -errno;
	err = read_arguments(text, arguments);
	if (err)
		return err;
	execve("/proc/self/exe", arguments, environ);
	return -errno;
}

void tstorm_fix_limits(void)
{
	struct rlimit limit;

	umask(0);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int tstorm_can_trap_cycles(void)
{
	int mode;

	return prctl(PR_GET_TSC, &mode, 0, 0, 0) == 0;
}

int tstorm_can_trap_cpuid(void)
{
	/* Asking for what is so already: an error only where the processor cannot. */
	return syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1) == 0;
}

static int kernel_traps;

static void set_traps(int on)
{
	prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
	syscall(SYS_arch_prctl, ARCH_SET_CPUID, !on);
}

void tstorm_trap_instructions(void)
{
	set_traps(1);
}

void tstorm_trap_kernel(void)
{
	kernel_traps = 1;
	set_traps(1);
}

int tstorm_untrap_kernel(void)
{
	int trapped = kernel_traps;

	kernel_traps = 0;
	if (trapped)
		set_traps(0);
	return trapped;
}

void tstorm_cpuid(unsigned int *eax, unsigned int *ebx, unsigned int *ecx, unsigned int *edx)
{
	if (kernel_traps)
		set_traps(0);
	__cpuid_count(*eax, *ecx, *eax, *ebx, *ecx, *edx);
	if (kernel_traps)
		set_traps(1);
}
