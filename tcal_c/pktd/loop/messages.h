/* What the control thread asks of the data thread. Data thread. */
#ifndef PKTD_MESSAGES_H
#define PKTD_MESSAGES_H

#include "loop.h"

/* Does what messages ask for, at once or, of a batch, when it is due. */
void messages_read(struct loop *loop);

/* Applies the batch that is due first. There must be one. */
void messages_apply_first(struct loop *loop);

/* Tells the control thread, if it waits for that, that something has moved since it was last told.
 */
void messages_tell_moved(struct loop *loop);

/* Frees every message on its way. Control thread, after the end of the data thread. */
void messages_free(struct loop *loop);

#endif
