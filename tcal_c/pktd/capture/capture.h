/* Captures: pcapng files of what links carry and lose, written by a thread of their own. */
#ifndef PKTD_CAPTURE_H
#define PKTD_CAPTURE_H

#include "pktd/record/capture_request.h"
#include "pktd/record/ring.h"

#include <pthread.h>

struct capture_file;

/* One direction of a link in a file. */
struct capture_interface {
    struct captured captured; /* first: the ring hands it back */
    struct capture_file *file;
    _Atomic(struct captured *) *place;
    uint32_t number;
    uint64_t lost_told; /* of captured.lost, in the file */
    uint64_t written;   /* segments */
    uint64_t last_ns;
};

struct captures {
    struct ring ring;
    int directory; /* where the files are made */
    int done;      /* eventfd: what was asked for is done */
    bool ticks;    /* write at least once a second, for who looks on, and to pipes */
    _Atomic uint64_t epoch_ns;
    _Atomic uint64_t epoch_unix_ns; /* what time of day that was */
    _Atomic bool asked;
    _Atomic bool stop;
    _Atomic uint64_t written;             /* segments in files */
    _Atomic uint64_t unwritten;           /* segments that a file could not take */
    _Atomic int error;                    /* why, errno of the first time; 0: none */
    _Atomic(struct capture_file *) files; /* all; the control thread adds */
    struct capture_file *dirty;           /* those with something to write; the writing thread's */
    pthread_t thread;
};

/* Makes files in `directory`, a descriptor that becomes its own. With `waits` the data thread waits
 * where the writing thread does not keep up, else packets are lost from the files and counted. 0 or
 * -errno. */
int captures_start(struct captures *c, int directory, uint64_t ring_bytes, bool waits);

/* Writes all that there is and ends the thread. Nothing may be put into the ring any more. */
void captures_stop(struct captures *c);

/* Makes a file, or opens a pipe, with an interface for each place, and has packets go there. A pipe
 * never makes anybody wait: what finds no room in its buffer is lost from it and counted. It ends
 * with its reader. 0 or -errno. */
int captures_open(struct captures *c, struct capture_request *request);

/* Everything that was put into the ring is in the files when this returns. */
void captures_flush(struct captures *c);

/* Segments that are missing in files (pipes apart) since there was no room in the ring. */
uint64_t captures_lost(struct captures *c);

#endif
