/* One per file of tests. */
#ifndef TCALD_TESTS_SUITES_H
#define TCALD_TESTS_SUITES_H

void test_netlink(void);
void test_parameters(void);
void test_tree(void);
void test_failures(void);
void test_counters(void);
void test_commands(void);
void test_probe(void);

#endif
