/* Tests of tprobe's pure parts; run under ASan and UBSan. */
#include <assert.h>
#include <stdio.h>

#include "probe/probe.h"
#include "suites.h"

static void test_durations(void) {
    int64_t ns = -1;
    assert(parse_duration("250ms", &ns) == 0 && ns == 250000000);
    assert(parse_duration("1.5", &ns) == 0 && ns == 1500000000);
    assert(parse_duration("0.93s", &ns) == 0 && ns == 930000000);
    assert(parse_duration("15us", &ns) == 0 && ns == 15000);
    assert(parse_duration("2h", &ns) == 0 && ns == INT64_C(7200000000000));
    assert(parse_duration("0", &ns) == 0 && ns == 0);
    assert(parse_duration("", &ns) == -1);
    assert(parse_duration("ms", &ns) == -1);
    assert(parse_duration("-1s", &ns) == -1);
    assert(parse_duration("1.2.3s", &ns) == -1);
    assert(parse_duration("0.5ns", &ns) == -1); /* not exact */
    assert(parse_duration("99999999999999999999s", &ns) == -1);
    assert(parse_duration("9223372036854775807h", &ns) == -1);
    assert(parse_duration("5 s", &ns) == -1);
}

static void test_rates(void) {
    int64_t bps = -1;
    assert(parse_rate("128kb", &bps) == 0 && bps == 128000);
    assert(parse_rate("1.5Mb", &bps) == 0 && bps == 1500000);
    assert(parse_rate("4G", &bps) == 0 && bps == INT64_C(4000000000));
    assert(parse_rate("0", &bps) == -1);
    assert(parse_rate("10MB", &bps) == -1); /* bytes are not bits */
}

static void test_counts(void) {
    int64_t n = -1;
    assert(parse_count("7", 1, 10, &n) == 0 && n == 7);
    assert(parse_count("11", 1, 10, &n) == -1);
    assert(parse_count("1.0", 1, 10, &n) == -1);
    assert(parse_count("x", 1, 10, &n) == -1);
}

static void test_percentiles(void) {
    struct sample s = {0};
    assert(sample_at(&s, 500) == 0);
    for (int64_t v = 100; v >= 1; v--) {
        assert(sample_add(&s, v) == 0);
    }
    assert(sample_at(&s, 0) == 1);
    assert(sample_at(&s, 500) == 50);
    assert(sample_at(&s, 990) == 99);
    assert(sample_at(&s, 1000) == 100);
    assert(sample_mean(&s) > 50.4 && sample_mean(&s) < 50.6);
    sample_free(&s);
    assert(s.count == 0);
}

static void test_resolve(void) {
    struct host h;
    assert(host_resolve("127.0.0.1", AF_UNSPEC, 7, &h) == 0 && host_overhead(&h) == 28);
    assert(host_resolve("::1", AF_UNSPEC, 7, &h) == 0 && host_overhead(&h) == 48);
    assert(host_resolve("::1", AF_INET, 7, &h) == -1);
}

int main(void) {
    test_durations();
    test_rates();
    test_counts();
    test_percentiles();
    test_resolve();
    test_active();
    puts("probe: ok");
    return 0;
}
