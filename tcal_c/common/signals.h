#ifndef TCAL_COMMON_SIGNALS_H
#define TCAL_COMMON_SIGNALS_H

/* For a child before exec: a program must start with the default for every signal and none blocked,
 * whatever we or those who started us ignored. */
void signals_reset(void);

#endif
