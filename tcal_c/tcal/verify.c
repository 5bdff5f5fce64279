/* Reading the kernel's state back and comparing it with what it shall be. */
#include "tree.h"

#include <stdio.h>

bool tcal_tree_verify(struct tcal_tree *tree, uint64_t *objects, char *why, size_t room) {
    (void)tree;
    *objects = 0;
    snprintf(why, room, "reading back is not there yet");
    return false;
}
