// SPDX-License-Identifier: GPL-2.0
/*
 * A directory of the host in an order that is the same in each run: by name. It is read as a whole when its first
 * entry is asked for; what comes or goes later is seen by who opens or rewinds it then.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>
#include "hostfs_repeat.h"

struct entry {
	unsigned long long ino;
	unsigned int type;
	int len;
	char name[];
};

struct hostfs_listing {
	unsigned int count, room;
	struct entry **entries;
};

static int compare(const void *left, const void *right)
{
	const struct entry *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static int grow(struct hostfs_listing *listing)
{
	unsigned int room = listing->room ? 2 * listing->room : 64;
	struct entry **more = kvmalloc_array(room, sizeof(*more), GFP_KERNEL);

	if (!more)
		return -ENOMEM;
	if (listing->count)
		memcpy(more, listing->entries, listing->count * sizeof(*more));
	kvfree(listing->entries);
	listing->entries = more;
	listing->room = room;
	return 0;
}

static int add(struct hostfs_listing *listing, const char *name, int len, unsigned long long ino, unsigned int type)
{
	struct entry *fresh;

	if (listing->count == listing->room && grow(listing))
		return -ENOMEM;
	fresh = kmalloc(sizeof(*fresh) + len + 1, GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;
	*fresh = (struct entry){ .ino = ino, .type = type, .len = len };
	memcpy(fresh->name, name, len + 1);
	listing->entries[listing->count++] = fresh;
	return 0;
}

struct hostfs_listing *hostfs_list(char *path)
{
	struct hostfs_listing *listing = kzalloc(sizeof(*listing), GFP_KERNEL);
	unsigned long long next, ino;
	int len, err = 0;
	unsigned int type;
	char *name;
	void *dir;

	if (!listing)
		return ERR_PTR(-ENOMEM);
	dir = open_dir(path, &err);
	if (!dir) {
		kfree(listing);
		return ERR_PTR(-err);
	}
	err = 0;
	while (!err && (name = read_dir(dir, &next, &ino, &len, &type)))
		err = add(listing, name, len, ino, type);
	close_dir(dir);
	if (err) {
		hostfs_list_free(listing);
		return ERR_PTR(err);
	}
	sort(listing->entries, listing->count, sizeof(*listing->entries), compare, NULL);
	return listing;
}

void hostfs_list_free(struct hostfs_listing *listing)
{
	unsigned int i;

	if (!listing)
		return;
	for (i = 0; i < listing->count; i++)
		kfree(listing->entries[i]);
	kvfree(listing->entries);
	kfree(listing);
}

const char *hostfs_list_entry(const struct hostfs_listing *listing, unsigned long long index, unsigned long long *ino,
			      int *len, unsigned int *type)
{
	const struct entry *entry;

	if (index >= listing->count)
		return NULL;
	entry = listing->entries[index];
	*ino = entry->ino;
	*len = entry->len;
	*type = entry->type;
	return entry->name;
}
