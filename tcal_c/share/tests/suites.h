/* One per file of tests. */
#ifndef SHARE_TESTS_SUITES_H
#define SHARE_TESTS_SUITES_H

void test_solve(void);
void test_solve_arguments(void);
void test_interest(void);
void test_interest_arguments(void);

#endif
