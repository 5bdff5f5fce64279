/* Every test of libtsshare, under the sanitizers; ends with the first failure. */
#include "suites.h"

#include <stddef.h>
#include <stdio.h>

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {{"shares", test_solve},
                  {"arguments of shares", test_solve_arguments},
                  {"interest", test_interest},
                  {"arguments of interest", test_interest_arguments}};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suites[i].run();
        printf("share: %s: ok\n", suites[i].name);
        fflush(stdout);
    }
    return 0;
}
