// SPDX-License-Identifier: GPL-2.0
/* The kernel's side of what it holds of the host: a process there that was killed is the end of the guest. */
#include <linux/kernel.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <os.h>
#include <tstorm/lives.h>

#define PATIENCE 100 /* milliseconds of the host: a process that was killed does not end at once */

/* What its program would have done is missing in all that would come. The guest may have no console: stderr has. */
static void end(int pid, int number)
{
	struct task_struct *task;
	const char *name = "none that is there";

	for_each_process(task) {
		if (task->mm && task->mm->context.id.pid == pid)
			name = task->comm;
	}
	os_warn("a process of the guest was killed on the machine, by signal %d: its program was %s\n", number, name);
	panic("a process of the guest was killed on the machine");
}

void tstorm_demand_alive(int pid, int failed)
{
	int number = tstorm_ended_by(pid, failed ? PATIENCE : 0);

	if (number)
		end(pid, number);
}

void tstorm_demand_all_alive(void)
{
	int pid, number = tstorm_one_ended(&pid);

	if (number)
		end(pid, number);
}
