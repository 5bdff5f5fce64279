/* Every test of libtsroutes, under the sanitizers; ends with the first failure. */
#include "suites.h"

#include <stdio.h>

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {{"structures", test_structures},
                  {"rounding", test_rounding},
                  {"arguments", test_arguments},
                  {"brute force", test_brute_force}};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suites[i].run();
        printf("routes: %s: ok\n", suites[i].name);
        fflush(stdout);
    }
    return 0;
}
