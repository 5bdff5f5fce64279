/* Going into another network namespace and back (setns(2)): of the calling thread alone. */
#ifndef COMMON_NETNS_H
#define COMMON_NETNS_H

/* The namespace that the thread is in, for netns_return: a descriptor, or -errno. */
int netns_here(void);

/* Into that namespace; the one before for netns_return, or -errno. */
int netns_enter(int netns);

/* Back. Takes the descriptor over. A thread that cannot come back must not go on. */
void netns_return(int home);

#endif
