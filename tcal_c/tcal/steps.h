/* The messages of a round, for those who build them. */
#ifndef TCAL_STEPS_H
#define TCAL_STEPS_H

#include "tree.h"

/* One more step, of a peer or of none (NULL). NULL when there is no room, or when this round has
 * failed already. */
struct tcal_step *tcal_step_begin(struct tcal_tree *tree, enum tcal_step_kind kind,
                                  const struct tcal_peer *peer);

/* Where the message of the last step goes. */
struct tcal_mail tcal_step_mail(struct tcal_tree *tree);

/* What is not even tried ends the round like a failure of the kernel's. */
void tcal_give_up(struct tcal_tree *tree, enum tcal_step_kind kind, const struct tcal_peer *peer,
                  int error, const char *text);

/* The class has another leaf: the inner qdiscs went with the one before. */
void tcal_note_leaf(struct tcal_peer *peer, enum tcal_leaf leaf);

#endif
