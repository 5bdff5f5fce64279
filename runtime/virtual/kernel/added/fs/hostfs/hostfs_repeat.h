/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the host's files would differ between two runs of one guest: times, inode numbers, the order of a
 * directory (hostfs_repeat.c). For kernel and user files.
 */
#ifndef HOSTFS_REPEAT_H
#define HOSTFS_REPEAT_H

#include <tstorm/seed.h>
#include "hostfs.h"

/* The guest's wall clock as file times have it. */
void hostfs_repeat_now(struct hostfs_timespec *now);

/* Changes what the host says of a file to what the guest sees; ->ino, ->dev and ->btime stay the host's. */
void hostfs_repeat_stat(struct hostfs_stat *st);

/* The guest made this file just now. Its inode number is a new one. */
void hostfs_repeat_made(const struct hostfs_stat *st);

/* The inode number of NAME in the directory that has number PARENT, which the host knows by ST. */
unsigned long hostfs_repeat_number(const struct hostfs_stat *st, unsigned long parent, const char *name, int len);

/* The same for an entry of a directory, of which ST has no more than ->dev and ->ino. */
unsigned long hostfs_repeat_entry(const struct hostfs_stat *st, unsigned long parent, const char *name, int len);

/* The file that the host knows by ST keeps NUMBER although its name changes or there come to be two. */
void hostfs_repeat_keep(const struct hostfs_stat *st, unsigned long number);

/* The host may give the number of this file to another one. */
void hostfs_repeat_gone(const struct hostfs_stat *st);

/* The names in the directory PATH, sorted; or an ERR_PTR. */
struct hostfs_listing;
struct hostfs_listing *hostfs_list(char *path);
void hostfs_list_free(struct hostfs_listing *listing);

/* Entry number INDEX: its name, or NULL behind the last. */
const char *hostfs_list_entry(const struct hostfs_listing *listing, unsigned long long index, unsigned long long *ino,
			      int *len, unsigned int *type);

/*
 * Gives the host's file, open at FD or else at PATH, these times of the guest; NULL leaves one. Not possible for a
 * file of another user.
 */
void hostfs_stamp_file(const char *path, int fd, const struct hostfs_timespec *atime,
		       const struct hostfs_timespec *mtime);

#endif
