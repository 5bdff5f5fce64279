#ifndef PROBE_SUITES_H
#define PROBE_SUITES_H

void test_active(void);

#endif
