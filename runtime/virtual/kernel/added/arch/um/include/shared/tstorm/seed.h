/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The seed of a run ("tstorm_seed=HEX" on the command line): with it, nothing that the guest sees comes from the
 * host's randomness, addresses or name.
 */
#ifndef TSTORM_SEED_H
#define TSTORM_SEED_H

/* Independent sequences that come from one seed. */
enum tstorm_sequence { TSTORM_RANDOM, TSTORM_SCATTER, TSTORM_PREEMPT, TSTORM_SEQUENCES };

/* Nonzero: a seed was given. */
extern int tstorm_seeded;

/* The next 64 bits of SEQUENCE. */
unsigned long long tstorm_draw(enum tstorm_sequence sequence);

/*
 * Other draws from a moment on: "reseed NS HEX" written to /proc/tstorm. No timer is set, so until then nothing in the
 * guest differs. Whoever keeps numbers drawn ahead asks before using them: nonzero when the moment has come, once.
 */
extern unsigned long long tstorm_reseed_ns; /* of virtual time; the greatest number: none is to come */
int tstorm_reseed_now(void);

static inline int tstorm_reseeds(void)
{
	return tstorm_reseed_ns != ~0ULL && tstorm_reseed_now();
}

/* LEN bytes into BUF: from the seed where there is one, else the host's getrandom. Returns how many, or -errno. */
long tstorm_getrandom(void *buf, unsigned long len);

#endif
