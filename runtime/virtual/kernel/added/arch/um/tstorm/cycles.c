// SPDX-License-Identifier: GPL-2.0
/*
 * The cycle counter of programs: virtual nanoseconds since the start, as of a processor of 1 GHz.
 *
 * The host processes that carry programs trap (general protection fault) on rdtsc and rdtscp, and where the host's
 * processor can, on cpuid, which then hides rdrand and rdseed and the number of the host's processor. Reading the
 * counter costs what reading the clock costs, so that a loop that waits for it to advance ends.
 *
 * The kernel's own process traps as well (host.h says why); should its C library read the counter after all, it
 * stops trapping.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <init.h>
#include <sysdep/ptrace.h>
#include <tstorm/cpu.h>
#include <tstorm/cycles.h>
#include <tstorm/host.h>
#include <tstorm/seed.h>
#include <tstorm/taking.h>

#define LONGEST_INSTRUCTION 15

enum instruction { OTHER, RDTSC, RDTSCP, CPUID };

static int is_prefix(u8 byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64 ... 0x67: case 0xf2: case 0xf3: case 0x40 ... 0x4f:
		return 1;
	}
	return 0;
}

/* The instruction in the LEN bytes at CODE and how long it is. */
static enum instruction decode(const u8 *code, int len, int *length)
{
	int at = 0;

	while (at < len && is_prefix(code[at]))
		at++;
	*length = at + 2;
	if (*length > len || code[at] != 0x0f)
		return OTHER;
	if (code[at + 1] == 0x31)
		return RDTSC;
	if (code[at + 1] == 0xa2)
		return CPUID;
	*length = at + 3;
	if (*length <= len && code[at + 1] == 0x01 && code[at + 2] == 0xf9)
		return RDTSCP;
	return OTHER;
}

/* What the processor says, less what differs between two runs: random numbers and which processor it is. */
static void emulate_cpuid(unsigned long *gp)
{
	unsigned int eax = gp[HOST_AX], leaf = eax, ecx = gp[HOST_CX], subleaf = ecx, ebx, edx;

	tstorm_cpuid(&eax, &ebx, &ecx, &edx);
	switch (leaf) {
	case 0x1:
		ecx &= ~(1u << 30);		/* rdrand */
		ebx &= 0x00ffffff;		/* number of the processor */
		break;
	case 0x7:
		if (!subleaf)
			ebx &= ~(1u << 18);	/* rdseed */
		break;
	case 0xb: case 0x1f:
		edx = 0;			/* number of the processor */
		break;
	case 0x8000001e:
		eax = 0;			/* number of the processor */
		ebx &= ~0xffu;			/* and of its core */
		ecx &= ~0xffu;			/* and of its node */
		break;
	}
	gp[HOST_AX] = eax;
	gp[HOST_BX] = ebx;
	gp[HOST_CX] = ecx;
	gp[HOST_DX] = edx;
}

static int __init trap_kernel(void)
{
	if (tstorm_seeded)
		tstorm_trap_kernel();
	return 0;
}
late_initcall(trap_kernel);

/* What is executed instead of this kernel, or started by it, is none of ours. */
static void untrap_kernel(void)
{
	tstorm_untrap_kernel();
}
__uml_exitcall(untrap_kernel);

int tstorm_emulate(struct uml_pt_regs *regs)
{
	unsigned long *gp = regs->gp;
	u8 code[LONGEST_INSTRUCTION];
	enum instruction found;
	u64 cycles;
	int length;

	if (!tstorm_seeded)
		return 0;
	if (!UPT_IS_USER(regs))
		return tstorm_untrap_kernel();
	length = sizeof(code) - copy_from_user(code, (void __user *)UPT_IP(regs), sizeof(code));
	found = decode(code, length, &length);
	switch (found) {
	case OTHER:
		return 0;
	case CPUID:
		emulate_cpuid(gp);
		break;
	case RDTSCP:
		gp[HOST_CX] = 0;		/* processor 0, node 0 */
		fallthrough;
	case RDTSC:
		tstorm_cpu_now();
		tstorm_look();
		cycles = ktime_get_raw_ns();
		gp[HOST_AX] = lower_32_bits(cycles);
		gp[HOST_DX] = upper_32_bits(cycles);
	}
	UPT_IP(regs) += length;
	return 1;
}
