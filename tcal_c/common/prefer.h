/* Scheduling for a thread that has to be quick and has no real-time priority. */
#ifndef COMMON_PREFER_H
#define COMMON_PREFER_H

/* The calling thread is preferred to others as far as the machine permits. */
void be_preferred(void);

#endif
