// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the host that look the same in each run of a guest that has a seed.
 *
 * Times. What the guest does to a file has the guest's time, on the host too. What the host's clock left while the
 * guest ran (from "tstorm_since=NANOSECONDS" on, else from the start of the kernel) is shown as the guest's start;
 * a change time, which nobody can set, as the time of modification. Access times are not kept: reading a file in
 * one run would show in the next.
 *
 * Inode numbers. A file has a number by those of its directory and its name, so that nothing need be remembered of
 * the many that the guest only looks at. What it makes, renames or links has a number that is remembered, by the
 * host's, as long as the file is there.
 *
 * Space. Blocks follow from the size: when the host allocates is its own affair.
 */
#include <linux/init.h>
#include <linux/rbtree.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/stat.h>
#include <linux/timekeeping.h>
#include <init.h>
#include <kern.h>
#include <os.h>
#include "hostfs_repeat.h"

#define DIRECTORY_BYTES 4096
#define BLOCK_BYTES 512
#define ALLOCATION_BYTES 4096
/* Times of files are those of the host's last tick, up to 10 ms ago. */
#define HOST_TICK_NS 20000000LL

static long long since_ns;	/* of the host: what is later came while the guest ran */

static int __init hostfs_since_setup(char *text, int *add)
{
	*add = 0;
	if (kstrtoll(text, 10, &since_ns))
		printf("tstorm_since=%s: must be nanoseconds since 1970\n", text);
	return 0;
}

__uml_setup("tstorm_since=", hostfs_since_setup,
"tstorm_since=<nanoseconds>\n"
"    With tstorm_seed: files that the host wrote later than this (since 1970) were written, for the guest,\n"
"    when it started. The start of the kernel if not given.\n\n"
);

static int __init hostfs_since_default(void)
{
	if (!since_ns)
		since_ns = os_persistent_clock_emulation() - HOST_TICK_NS;
	return 0;
}
early_initcall(hostfs_since_default);

static long long nanoseconds(const struct hostfs_timespec *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

static struct hostfs_timespec guest_start(void)
{
	struct timespec64 boot;

	getboottime64(&boot);
	return (struct hostfs_timespec){ boot.tv_sec, boot.tv_nsec };
}

void hostfs_repeat_now(struct hostfs_timespec *now)
{
	struct timespec64 time;

	ktime_get_coarse_real_ts64(&time);
	*now = (struct hostfs_timespec){ time.tv_sec, time.tv_nsec };
}

static int by_guest(const struct hostfs_timespec *time)
{
	struct hostfs_timespec start = guest_start(), now;

	hostfs_repeat_now(&now);
	return nanoseconds(time) >= nanoseconds(&start) && nanoseconds(time) <= nanoseconds(&now);
}

static int by_host_meanwhile(const struct hostfs_timespec *time)
{
	long long ns = nanoseconds(time);

	return ns >= since_ns && !by_guest(time) && ns <= os_persistent_clock_emulation();
}

void hostfs_repeat_stat(struct hostfs_stat *st)
{
	if (by_host_meanwhile(&st->mtime))
		st->mtime = guest_start();
	if (by_host_meanwhile(&st->ctime))
		st->ctime = st->mtime;
	if (!by_guest(&st->atime))
		st->atime = st->mtime;
	if (S_ISDIR(st->mode))
		st->size = DIRECTORY_BYTES;
	st->blocks = DIV_ROUND_UP(st->size, ALLOCATION_BYTES) * (ALLOCATION_BYTES / BLOCK_BYTES);
	if (!S_ISDIR(st->mode) && !S_ISREG(st->mode))
		st->blocks = 0;
}

/* A file whose number is remembered, in a tree ordered by what the host knows it by. */
struct kept {
	struct rb_node node;
	unsigned long long dev, ino;
	struct hostfs_timespec btime;
	unsigned long number;
};

static struct rb_root kept_files = RB_ROOT;
static DEFINE_SPINLOCK(kept_lock);
static const siphash_key_t number_key = { { 0x6e756d626572, 0x66696c6573 } };

static unsigned long long device(const struct hostfs_stat *st)
{
	return (unsigned long long)st->dev.maj << 32 | st->dev.min;
}

/* The place for the file in the tree: *place is it if it is there. */
static struct rb_node **find(const struct hostfs_stat *st, struct rb_node **parent)
{
	struct rb_node **place = &kept_files.rb_node;
	unsigned long long dev = device(st);
	struct kept *at;

	*parent = NULL;
	while (*place) {
		at = rb_entry(*place, struct kept, node);
		if (at->ino == st->ino && at->dev == dev)
			break;
		*parent = *place;
		if (at->ino < st->ino || (at->ino == st->ino && at->dev < dev))
			place = &at->node.rb_right;
		else
			place = &at->node.rb_left;
	}
	return place;
}

static int same_file_as_kept(const struct hostfs_stat *st)
{
	struct rb_node *unused, *found;
	struct kept *kept;
	int same = 1;

	spin_lock(&kept_lock);
	found = *find(st, &unused);
	if (found) {
		kept = rb_entry(found, struct kept, node);
		same = kept->btime.tv_sec == st->btime.tv_sec && kept->btime.tv_nsec == st->btime.tv_nsec;
	}
	spin_unlock(&kept_lock);
	return same;
}

void hostfs_repeat_keep(const struct hostfs_stat *st, unsigned long number)
{
	struct kept *fresh = kmalloc(sizeof(*fresh), GFP_KERNEL), *at;
	struct rb_node *parent, **place;

	if (!fresh)
		return;
	spin_lock(&kept_lock);
	place = find(st, &parent);
	at = *place ? rb_entry(*place, struct kept, node) : fresh;
	at->dev = device(st);
	at->ino = st->ino;
	at->btime = st->btime;
	at->number = number;
	if (at == fresh) {
		rb_link_node(&fresh->node, parent, place);
		rb_insert_color(&fresh->node, &kept_files);
		fresh = NULL;
	}
	spin_unlock(&kept_lock);
	kfree(fresh);
}

void hostfs_repeat_gone(const struct hostfs_stat *st)
{
	struct rb_node *parent, *found;

	spin_lock(&kept_lock);
	found = *find(st, &parent);
	if (found)
		rb_erase(found, &kept_files);
	spin_unlock(&kept_lock);
	if (found)
		kfree(rb_entry(found, struct kept, node));
}

void hostfs_repeat_made(const struct hostfs_stat *st)
{
	static u64 made;

	hostfs_repeat_keep(st, siphash_1u64(++made, &number_key));
}

unsigned long hostfs_repeat_entry(const struct hostfs_stat *st, unsigned long parent, const char *name, int len)
{
	siphash_key_t key = number_key;
	struct rb_node *unused, *found;
	unsigned long number = 0;

	spin_lock(&kept_lock);
	found = *find(st, &unused);
	if (found)
		number = rb_entry(found, struct kept, node)->number;
	spin_unlock(&kept_lock);
	if (number)
		return number;
	key.key[0] ^= parent;
	return siphash(name, len, &key);
}

unsigned long hostfs_repeat_number(const struct hostfs_stat *st, unsigned long parent, const char *name, int len)
{
	unsigned long number;

	/* The host may have given the number of a file that it removed itself to another one. */
	if (!same_file_as_kept(st))
		hostfs_repeat_gone(st);
	number = hostfs_repeat_entry(st, parent, name, len);
	if (st->nlink > 1 && !S_ISDIR(st->mode))
		hostfs_repeat_keep(st, number);
	return number;
}
