/* Changes to what is in force, and the marks they leave: who has to look at what again. */
#ifndef TCAL_CHANGE_H
#define TCAL_CHANGE_H

#include "model.h"

/* Makes one change, and marks what it concerns; false: out of memory. */
bool tcal_change(struct tcal *t, const struct tcal_change *c);
/* Takes back what was made since t->undos was 0. */
void tcal_undo_all(struct tcal *t);

/* This port has to look at every node again; false: out of memory. */
bool tcal_touch_port(struct tcal *t, struct port *port);
void tcal_clear_marks(struct tcal *t);

#endif
