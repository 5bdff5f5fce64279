/* Lets user-mode Linux before 6.13 start on processors with AMX: LD_PRELOAD for linux.uml alone.
 *
 * It keeps 2.7 kB of what a program has in floating-point registers. The kernel takes all that the processor has, 11 kB
 * with AMX, or nothing, and without this the machine ends at its first program. What is missing are AMX's tiles, which
 * programs in there cannot use: they are given as zeros. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SETREGSET = 0x4205, XSTATE = 0x202, MOST = 1 << 14 }; /* linux/ptrace.h, linux/elf.h */

long ptrace(int request, ...)
{
	va_list rest;
	va_start(rest, request);
	long pid = va_arg(rest, int);
	void *address = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);

	static char whole[MOST];
	struct iovec all = {whole, sizeof whole};
	if (request == SETREGSET && address == (void *)XSTATE) {
		const struct iovec *given = data;
		if (given->iov_len > sizeof whole) {
			return syscall(SYS_ptrace, request, pid, address, data);
		}
		memcpy(whole, given->iov_base, given->iov_len);
		return syscall(SYS_ptrace, request, pid, address, &all);
	}
	/* The library's own gives what PEEK reads by value. */
	long word = 0;
	if (request >= 1 && request <= 3) {
		return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}
