// SPDX-License-Identifier: GPL-2.0
/*
 * Programs lose the processor inside computing: "tstorm_preempt=NANOSECONDS".
 *
 * Without it a program that computes has the processor until its next system call that blocks. With it the program
 * sleeps at drawn instructions for 1 to NANOSECONDS, while the others run. The draws come from the seed, in a sequence
 * of their own, and so do the instructions: nothing here looks at the host's time or counters.
 *
 * Two kinds of points come again exactly:
 * - An instruction is the N-th after a turn (a system call, a page fault) if the program is stepped that far. Each
 *   step costs a turn, so N is small, and often very small.
 * - A touch of a page is the N-th one if each before it is a page fault. So far from any call the program is stopped
 *   between two accesses to its data. A page is taken from a program by clearing its "accessed" bit, as the kernel
 *   does when it looks for pages to reclaim. User-mode Linux has no such bit in hardware and gives the program no
 *   access to a page without it, so the next touch is a fault, which only sets the bit again. The program is then
 *   stepped over that one instruction, and the page is taken again. What pages hold, and what the kernel itself reads
 *   and writes there, is not affected.
 *
 * Only where memory is shared can others see the difference: programs with one thread and without a shared mapping
 * that they can write are left alone, as are those that scatter.c leaves alone. Pages that are taken are such as others
 * may see, and none of the running thread's stack.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagewalk.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/siginfo.h>
#include <asm/tlbflush.h>
#include <init.h>
#include <kern.h>
#include <tstorm/preempt.h>
#include <tstorm/scatter.h>
#include <tstorm/seed.h>

#define WOKEN_ONE_IN 4		/* calls in which a program slept, after which something is done: work begins there, */
#define FIRST_CALLS 64		/* and of the first ones of a thread, since short programs have no more; */
#define CALL_ONE_IN 32		/* other calls */
#define FAULT_ONE_IN 4		/* page faults */
#define AGAIN_ONE_IN 2		/* stops: once more, soon */
#define STEP_BITS 7		/* up to 128 instructions, */
#define TOUCH_BITS 6		/* and 64 touches of pages */
#define PICKS 3			/* mappings of which a page is taken after a call */

unsigned long long tstorm_preempt_ns __ro_after_init;

static int __init tstorm_preempt_setup(char *text, int *add)
{
	*add = 0;
	if (kstrtoull(text, 10, &tstorm_preempt_ns) || tstorm_preempt_ns > NSEC_PER_SEC) {
		printf("tstorm_preempt=%s: must be at most 1000000000 nanoseconds\n", text);
		exit(1);
	}
	return 0;
}

__uml_setup("tstorm_preempt=", tstorm_preempt_setup,
"tstorm_preempt=<nanoseconds>\n"
"    Programs lose the processor for up to this inside computing, at instructions drawn from tstorm_seed.\n\n"
);

/* 0 to 2^BITS - 1: each power of two is as likely. */
static unsigned int drawn_below(int bits)
{
	u64 drawn = tstorm_draw(TSTORM_PREEMPT);

	return (drawn >> 32) % (1 << (u32)drawn % (bits + 1));
}

static int age_page(pte_t *pte, unsigned long address, unsigned long next, struct mm_walk *walk)
{
	if (!pte_present(*pte) || !ptep_test_and_clear_young(walk->vma, address, pte))
		return 0;
	flush_tlb_page(walk->vma, address);
	return 1;
}

static const struct mm_walk_ops age_ops = {
	.pte_entry = age_page,
	.walk_lock = PGWALK_RDLOCK,
};

/* The first page that the program has between BEGIN and END. Nonzero: there was one. */
static int age_one(struct vm_area_struct *vma, unsigned long begin, unsigned long end)
{
	return begin < end && walk_page_range(vma->vm_mm, begin, end, &age_ops, NULL) == 1;
}

static void age_mapping(struct vm_area_struct *vma)
{
	unsigned long from = vma->vm_start + tstorm_draw(TSTORM_PREEMPT) % vma_pages(vma) * PAGE_SIZE;

	if (!age_one(vma, from, vma->vm_end))
		age_one(vma, vma->vm_start, from);
}

/* Others may see what is written there: threads of this process, or with VM_SHARED other processes. */
static int may_race(struct vm_area_struct *vma)
{
	unsigned long stack = PT_REGS_SP(current_pt_regs()), wanted = VM_WRITE;

	if (atomic_read(&vma->vm_mm->mm_users) == 1)
		wanted |= VM_SHARED;
	return (vma->vm_flags & (wanted | VM_EXEC | VM_IO | VM_PFNMAP)) == wanted &&
	       (stack < vma->vm_start || stack >= vma->vm_end);
}

/* Else nobody sees what a program does between two calls: it may as well be stopped at one, as scatter.c does. */
static int shares_memory(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	if (atomic_read(&mm->mm_users) > 1)
		return 1;
	for_each_vma(vmi, vma) {
		if ((vma->vm_flags & (VM_WRITE | VM_SHARED)) == (VM_WRITE | VM_SHARED))
			return 1;
	}
	return 0;
}

static struct vm_area_struct *racing_mapping(struct mm_struct *mm, unsigned long number)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, mm, 0);

	for_each_vma(vmi, vma) {
		if (may_race(vma) && !number--)
			return vma;
	}
	return NULL;
}

/* The page of the last fault. The instruction that touched it is done. */
static void age_again(void)
{
	unsigned long page = FAULT_ADDRESS(*UPT_FAULTINFO(&current_pt_regs()->regs)) & PAGE_MASK;
	struct vm_area_struct *vma;

	if (!mmap_read_trylock(current->mm))
		return;
	vma = vma_lookup(current->mm, page);
	if (vma && may_race(vma))
		age_one(vma, page, page + PAGE_SIZE);
	mmap_read_unlock(current->mm);
}

/* Small mappings are as likely as large ones: global variables are there. */
static void age_some(struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	unsigned long count = 0;
	VMA_ITERATOR(vmi, mm, 0);
	int i;

	for_each_vma(vmi, vma)
		count += may_race(vma);
	for (i = 0; count && i < PICKS; i++)
		age_mapping(racing_mapping(mm, tstorm_draw(TSTORM_PREEMPT) % count));
}

static void forget(void)
{
	current->thread.preempt_after = 0;
	current->thread.preempt_retakes = 0;
}

static void stop_after_steps(void)
{
	current->thread.preempt_touches = 0;
	current->thread.preempt_retakes = 0;
	current->thread.preempt_after = 1 + drawn_below(STEP_BITS);
}

/* The page of the last fault is lent for one instruction. */
static void lend(void)
{
	current->thread.preempt_retakes = 1;
	current->thread.preempt_after = 2;
}

void tstorm_preempt_after_call(int woken)
{
	unsigned int one_in = woken ? WOKEN_ONE_IN : CALL_ONE_IN;
	u64 drawn;

	forget();
	if (tstorm_is_exact() || !current->mm)
		return;
	drawn = tstorm_draw(TSTORM_PREEMPT);
	if (current->thread.preempt_calls < FIRST_CALLS) {
		current->thread.preempt_calls++;
		one_in = WOKEN_ONE_IN;
	}
	if (drawn % one_in || !mmap_read_trylock(current->mm))
		return;
	if (!shares_memory(current->mm)) {
		current->thread.preempt_touches = 0;
	} else if (drawn / CALL_ONE_IN % 2) {
		stop_after_steps();
	} else {
		age_some(current->mm);
		current->thread.preempt_touches = 1 + drawn_below(TOUCH_BITS);
	}
	mmap_read_unlock(current->mm);
}

void tstorm_preempt_after_fault(struct vm_area_struct *vma)
{
	struct thread_struct *thread = &current->thread;
	u64 drawn;

	if (tstorm_is_exact())
		return;
	if (thread->preempt_retakes)	/* the same instruction touches another page */
		forget();
	if (thread->preempt_after)
		return;
	if (!thread->preempt_touches) {
		drawn = tstorm_draw(TSTORM_PREEMPT);
		if (drawn % FAULT_ONE_IN || !shares_memory(vma->vm_mm))
			return;
		if (drawn / FAULT_ONE_IN % 2) {
			stop_after_steps();
			return;
		}
		thread->preempt_touches = 1 + drawn_below(TOUCH_BITS);
	}
	if (--thread->preempt_touches == 0)
		thread->preempt_after = 1;
	else if (may_race(vma))
		lend();
}

void tstorm_preempt_program(void)
{
	u64 drawn = tstorm_draw(TSTORM_PREEMPT);

	forget();
	tstorm_pause(1 + drawn / (2 * AGAIN_ONE_IN) % tstorm_preempt_ns);
	if (drawn % AGAIN_ONE_IN)
		return;
	if (drawn / AGAIN_ONE_IN % 2) {
		stop_after_steps();
		current->thread.preempt_after++; /* not at once */
	} else {
		current->thread.preempt_touches = 1 + drawn_below(TOUCH_BITS);
		lend();
	}
}

/*
 * The host's processor steps by a flag in the program's flags register. An instruction that stores or loads that
 * register would take the flag with it, so before one the program is let go.
 */
int tstorm_preempt_may_step(void)
{
	unsigned long ip = PT_REGS_IP(current_pt_regs());
	u8 code[4] = { };
	int i;

	/* Where there is no code, the next step says so. At the end of a page the rest of it is enough. */
	if (copy_from_user_nofault(code, (void __user *)ip, min(sizeof(code), PAGE_SIZE - offset_in_page(ip))))
		return 1;
	for (i = 0; i < sizeof(code); i++) {
		switch (code[i]) {
		case 0x66:		/* prefixes */
		case 0x40 ... 0x4f:
		case 0xf2:
		case 0xf3:
			continue;
		case 0x9c:		/* pushf, popf, iret */
		case 0x9d:
		case 0xcf:
			forget();
			return 0;
		}
		break;
	}
	return 1;
}

int tstorm_preempt_stepped(int code)
{
	if (code != TRAP_TRACE || current->thread.preempt_after < 2 || test_thread_flag(TIF_SINGLESTEP))
		return 0;
	if (current->thread.preempt_retakes) {
		age_again();
		forget();
	} else {
		current->thread.preempt_after--;
	}
	return 1;
}
