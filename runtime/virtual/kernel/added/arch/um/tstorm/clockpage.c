// SPDX-License-Identifier: GPL-2.0
/* The kernel's side of the clock page: which program runs. */
#include <linux/sched.h>
#include <linux/string.h>
#include <tstorm/clockpage.h>

void __clockpage_switched(struct task_struct *to)
{
	struct task_struct *program = to->group_leader;

	clockpage->switches++;
	if (!to->mm)
		return;
	clockpage->pid = program->pid;
	memcpy(clockpage->comm, program->comm, sizeof(clockpage->comm));
}
