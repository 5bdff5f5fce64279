/* Fuzzes routes and composition: any bytes as a network and changes of it, compared with brute
 * force after each batch. */
#include "brute.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    compare_with_brute_force(data, size);
    return 0;
}
