/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __TSTORM_AHEAD_H
#define __TSTORM_AHEAD_H

/* After a program wrote to a page that was not there: `pte` is its entry now. Needs the mmap lock. */
void tstorm_fault_ahead(struct vm_area_struct *vma, unsigned long address, pte_t *pte);

#endif
