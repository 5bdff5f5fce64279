/* The messages of a round, for those who build them. */
#ifndef TCAL_STEPS_H
#define TCAL_STEPS_H

#include "tree.h"

/* One more step, of a peer or of none (NULL), whose message goes to its mail. After a failure in
 * this round it is not sent. */
struct tcal_step *tcal_step(struct tcal_tree *tree, enum tcal_step_kind kind,
                            const struct tcal_peer *peer);

/* What is not even tried ends the round like a failure of the kernel's. */
void tcal_give_up(struct tcal_tree *tree, enum tcal_step_kind kind, const struct tcal_peer *peer,
                  int error, const char *text);

/* The class has another leaf: the inner qdiscs went with the one before. */
void tcal_note_leaf(struct tcal_peer *peer, enum tcal_leaf leaf);

#endif
