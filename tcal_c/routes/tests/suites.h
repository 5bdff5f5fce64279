/* One per file of tests. */
#ifndef ROUTES_TESTS_SUITES_H
#define ROUTES_TESTS_SUITES_H

void test_structures(void);
void test_rounding(void);
void test_arguments(void);
void test_brute_force(void);

#endif
