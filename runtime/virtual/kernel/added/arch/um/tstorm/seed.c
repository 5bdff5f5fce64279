// SPDX-License-Identifier: GPL-2.0
/*
 * Randomness from the seed of a run.
 *
 * The generator is xoshiro256** (Blackman and Vigna), its state filled by splitmix64 from the seed's words and the
 * number of the sequence. It need not be secret: everything that it feeds goes through the kernel's own generator.
 * At moments that were told the sequences are filled anew, from other seeds.
 */
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#if __has_include(<linux/hex.h>)
#include <linux/hex.h>
#endif
#include <linux/minmax.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <init.h>
#include <kern.h>
#include <os.h>
#include <tstorm/cpu.h>
#include <tstorm/host.h>
#include <tstorm/seed.h>

#define SEED_BYTES 32
#define WORDS (SEED_BYTES / sizeof(u64))
#define RESEEDS 16

int tstorm_seeded __ro_after_init;
static int addresses_vary __ro_after_init;
static u64 state[TSTORM_SEQUENCES][WORDS];

/* Seeds of later moments, in order of time; `reseeded` of them are in use. */
static struct {
	u64 at_ns;
	u8 seed[SEED_BYTES];
} reseeds[RESEEDS];
static int reseed_count, reseeded;
unsigned long long tstorm_reseed_ns = ~0ULL;

static u64 rotate(u64 value, int bits)
{
	return value << bits | value >> (64 - bits);
}

static u64 splitmix(u64 *counter)
{
	u64 mixed = *counter += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
	return mixed ^ mixed >> 31;
}

unsigned long long tstorm_draw(enum tstorm_sequence sequence)
{
	u64 *s = state[sequence], drawn, shifted;
	unsigned long flags;

	/* The kernel's generator has to take part: one byte of it asks for the seed (drivers/char/random.c). */
	if (sequence != TSTORM_RANDOM && tstorm_reseed_ns != ~0ULL && time_travel_now() >= tstorm_reseed_ns)
		get_random_bytes(&drawn, 1);
	local_irq_save(flags);
	drawn = rotate(s[1] * 5, 7) * 9;
	shifted = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	local_irq_restore(flags);
	return drawn;
}

long tstorm_getrandom(void *buf, unsigned long len)
{
	unsigned long done, part;
	u64 drawn;

	if (!tstorm_seeded)
		return os_getrandom(buf, len, 0);
	for (done = 0; done < len; done += part) {
		drawn = tstorm_draw(TSTORM_RANDOM);
		part = min_t(unsigned long, len - done, sizeof(drawn));
		memcpy(buf + done, &drawn, part);
	}
	return len;
}

/* Each word depends on all bytes before it, and each sequence on all of them. */
static void fill(const u8 *seed, enum tstorm_sequence sequence)
{
	u64 counter = sequence, word;
	int i;

	for (i = 0; i < WORDS; i++) {
		memcpy(&word, seed + i * sizeof(word), sizeof(word));
		counter ^= word;
		counter = splitmix(&counter);
	}
	for (i = 0; i < WORDS; i++)
		state[sequence][i] = splitmix(&counter);
}

int tstorm_reseed_now(void)
{
	unsigned long flags;
	int i, came = 0;

	local_irq_save(flags);
	while (time_travel_now() >= tstorm_reseed_ns) {
		for (i = 0; i < TSTORM_SEQUENCES; i++)
			fill(reseeds[reseeded].seed, i);
		reseeded++;
		tstorm_reseed_ns = reseeded < reseed_count ? reseeds[reseeded].at_ns : ~0ULL;
		came = 1;
	}
	local_irq_restore(flags);
	return came;
}

static int reseed_later(u64 at_ns, const char *hex)
{
	u64 least = reseed_count ? reseeds[reseed_count - 1].at_ns + 1 : 0;

	if (!tstorm_seeded || reseed_count == RESEEDS || at_ns < max_t(u64, least, time_travel_now()) || at_ns == ~0ULL)
		return -EINVAL;
	if (strlen(hex) != 2 * SEED_BYTES || hex2bin(reseeds[reseed_count].seed, hex, SEED_BYTES))
		return -EINVAL;
	reseeds[reseed_count].at_ns = at_ns;
	if (reseeded == reseed_count++)
		tstorm_reseed_ns = at_ns;
	return 0;
}

/* One "reseed NS HEX" a call, in order of time; the moment is CLOCK_MONOTONIC's. */
static ssize_t tstorm_write(struct file *file, const char __user *from, size_t length, loff_t *place)
{
	char text[128] = { }, hex[2 * SEED_BYTES + 1];
	u64 at_ns;
	int refused;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	if (sscanf(text, "reseed %llu %64s", &at_ns, hex) != 2)
		return -EINVAL;
	refused = reseed_later(at_ns, hex);
	return refused ? refused : length;
}

static int __init tstorm_seed_setup(char *text, int *add)
{
	u8 seed[SEED_BYTES] = { };
	size_t digits = strlen(text);
	int i;

	if (!digits || digits % 2 || digits > 2 * SEED_BYTES || hex2bin(seed, text, digits / 2)) {
		os_warn("tstorm_seed=%s: must be 1 to %d bytes in hexadecimal, two digits each\n", text, SEED_BYTES);
		exit(1);
	}
	for (i = 0; i < TSTORM_SEQUENCES; i++)
		fill(seed, i);
	tstorm_seeded = 1;
	addresses_vary = tstorm_fix_addresses();
	tstorm_fix_limits();
	*add = 0; /* not a guest's business: its programs see /proc/cmdline */
	return 0;
}

__uml_setup("tstorm_seed=", tstorm_seed_setup,
"tstorm_seed=<hexadecimal>\n"
"    All randomness of the guest comes from this seed (up to 32 bytes), and programs see virtual time\n"
"    in the processor's cycle counter: two guests with one seed that do the same see the same.\n\n"
);

static int tstorm_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "random: %s\n", tstorm_seeded ? "seed" : "host");
	seq_printf(m, "cycle counter: %s\n", tstorm_seeded && tstorm_can_trap_cycles() ? "virtual" : "host");
	seq_printf(m, "random instructions: %s\n", tstorm_seeded && tstorm_can_trap_cpuid() ? "hidden" : "visible");
	seq_printf(m, "host addresses: %s\n", tstorm_seeded && !addresses_vary ? "fixed" : "vary");
	return 0;
}

static int tstorm_open(struct inode *inode, struct file *file)
{
	return single_open(file, tstorm_show, NULL);
}

static const struct proc_ops tstorm_ops = {
	.proc_open = tstorm_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = tstorm_write,
};

static int __init tstorm_proc(void)
{
	proc_create("tstorm", 0644, NULL, &tstorm_ops);
	return 0;
}
fs_initcall(tstorm_proc);
