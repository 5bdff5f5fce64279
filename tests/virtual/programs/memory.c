/*
 * Goes through fresh memory, in order and not: says how many pages were there after the first way and
 * after the second, beyond those touched. Ends with 1 if a page was not empty.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 512
#define PAGE 4096

static long resident(void)
{
	long all, there;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%ld %ld", &all, &there) != 2)
		return -1;
	fclose(file);
	return there;
}

static char *fresh(void)
{
	return mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Writes to a page that must be empty. */
static int touch(char *page)
{
	static const char empty[PAGE];
	int bad = memcmp(page + 1, empty, PAGE - 1) != 0;

	page[0] = 1;
	page[PAGE - 1] = 1;
	return bad;
}

int main(void)
{
	char *forward = fresh(), *backward = fresh(), *holed = fresh();
	long before = resident(), there;
	int i, bad = 0;

	for (i = 0; i < PAGES; i++)
		forward[i * PAGE] = 0, bad += touch(forward + i * PAGE);
	there = resident();
	printf("%ld ", there - before - PAGES);
	for (i = PAGES - 1; i >= 0; i -= 2)
		backward[i * PAGE] = 0, bad += touch(backward + i * PAGE);
	printf("%ld\n", resident() - there - PAGES / 2);
	mprotect(holed + 8 * PAGE, PAGE, PROT_NONE);
	munmap(holed + 16 * PAGE, PAGE);
	for (i = 0; i < PAGES; i++)
		if (i != 8 && i != 16)
			holed[i * PAGE] = 0, bad += touch(holed + i * PAGE);
	mprotect(holed + 8 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	bad += touch(holed + 8 * PAGE);
	return bad != 0;
}
