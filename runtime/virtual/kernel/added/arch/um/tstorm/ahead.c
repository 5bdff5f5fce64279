// SPDX-License-Identifier: GPL-2.0
/*
 * A page fault is dear here: the host makes a signal of it, and the page is mapped by a system call of
 * the program's host process. So whoever goes through fresh memory page by page gets the next few with
 * the first. What is there or was asked for in another order is left alone.
 */
#include <linux/mm.h>
#include <tstorm/ahead.h>

#define AHEAD_PAGES 7

void tstorm_fault_ahead(struct vm_area_struct *vma, unsigned long address, pte_t *pte)
{
	unsigned long index = pte_index(address), i;

	address &= PAGE_MASK;
	if (!vma_is_anonymous(vma) || address == vma->vm_start || !index || !pte_present(pte[-1]))
		return;
	for (i = 1; i <= AHEAD_PAGES && index + i < PTRS_PER_PTE; i++) {
		unsigned long next = address + i * PAGE_SIZE;

		if (next >= vma->vm_end || !pte_none(pte[i]))
			return;
		/* Without leave to try again, the lock stays. A failure is the program's, if it comes there. */
		if (handle_mm_fault(vma, next, FAULT_FLAG_WRITE, NULL) & VM_FAULT_ERROR)
			return;
	}
}
