/* Every test of libtcal and of tcald's protocol, under the sanitizers; ends with the first failure.
 */
#include "tcal/tree/dist.h"
#include "suites.h"

#include <stdio.h>

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {{"netlink", test_netlink},   {"parameters", test_parameters},
                  {"tree", test_tree},         {"failures", test_failures},
                  {"counters", test_counters}, {"commands", test_commands},
                  {"probe", test_probe}};
    tcal_dist_init();
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suites[i].run();
        printf("tcal: %s: ok\n", suites[i].name);
        fflush(stdout);
    }
    return 0;
}
