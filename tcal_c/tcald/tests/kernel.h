/* A kernel's traffic control as far as tcald's messages go: it keeps what it is told, refuses what
 * does not fit, dumps what it has, and fails when a test wants it to. In place of socket.c. */
#ifndef TCALD_TESTS_KERNEL_H
#define TCALD_TESTS_KERNEL_H

#include "tcal/tcal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_SEND_FAILS (-1)    /* the socket takes nothing */
#define KERNEL_ANSWER_LOST (-2)   /* answers did not fit in the socket's buffer */
#define KERNEL_REFUSES_ALL (-3)   /* every message fails from here on */
#define KERNEL_MESSAGES_KEPT 4096 /* of those sent last */

/* Empties the kernel: an interface eth0 with its default qdisc. */
void kernel_reset(void);

/* The n-th message from now on (from 1; 0: none) fails with this error, or as KERNEL_… says. */
void kernel_fail(uint64_t message, int error);

/* The interface disappears. */
void kernel_unplug(void);
/* Somebody else's qdisc of this kind is at the root; NULL: none. */
void kernel_occupy(const char *kind);
/* A tree of ours is there already. */
void kernel_leave_tree(void);

/* Messages taken since kernel_reset, and since kernel_count was last called. */
uint64_t kernel_messages(void);
uint64_t kernel_count(void);
/* The same, of one type and kind ("" for any). */
uint64_t kernel_count_of(uint16_t type, const char *kind);

/* Objects that there are. */
size_t kernel_objects(void);
/* Removes the qdisc of this handle and what is in it, behind everybody's back. */
void kernel_break(uint32_t handle);

/* Counters of a class or a qdisc. */
struct kernel_stats {
    uint64_t bytes;
    uint64_t packets;
    uint32_t qlen;
    uint32_t backlog;
    uint32_t drops;
    uint32_t overlimits;
};
struct kernel_stats *kernel_stats_of(uint32_t handle);

/* Whether netem counts what waits in the queue behind it: frames of the probe then leave it. As it
 * is after kernel_reset, none do. */
void kernel_count_netem(bool counts);

/* The raw attribute inside the options of an object: its length, 0 when there is none. */
size_t kernel_option(uint32_t handle, uint16_t type, void *value, size_t room);
/* The fixed part at the front of an object's options. */
size_t kernel_options(uint32_t handle, void *value, size_t room);

/* For fuzzing: bytes that are given as answers, datagram by datagram (two bytes of length, then so
 * many), instead of the kernel's own. NULL: its own again. */
void kernel_script(const uint8_t *bytes, size_t length);

/* Changes in its own answers: three bytes each (where, of 16 bits; the new byte), two a datagram.
 */
void kernel_garble(const uint8_t *bytes, size_t length);

#endif
