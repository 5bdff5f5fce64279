/* A request to capture packets, from the protocol to the writer of files. */
#ifndef PKTD_CAPTURE_REQUEST_H
#define PKTD_CAPTURE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CAPTURE_PLACES 16u /* of one file, or pipe */

struct captured;

/* What is to be captured, and into what. A place is where a link has its destination. */
struct capture_request {
    const char *file;
    bool is_pipe;  /* the file is a pipe with a reader, else it is made */
    bool programs; /* only packets of programs */
    uint32_t count;
    uint32_t taken; /* -EBUSY: the first that is captured already */
    const char *name[CAPTURE_PLACES];
    _Atomic(struct captured *) *place[CAPTURE_PLACES];
};

#endif
