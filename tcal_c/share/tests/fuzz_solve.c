/* Fuzzes the solver: any bytes as flows and links, and proof that the shares are right. */
#include "common/tests/check.h"
#include "shares.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct shares shares;
    shares_draw(&shares, data, size);
    CHECK_EQ(shares_solve(&shares), 0);
    shares_prove(&shares);
    return 0;
}
