/* The end of a batch. */
#include "batch.h"

#include <stdlib.h>

void batch_free(struct batch *batch) {
    if (batch) {
        free(batch->op);
        free(batch->node);
        free(batch->link);
        free(batch->group);
        free(batch);
    }
}
