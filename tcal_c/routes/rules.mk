# libtsroutes.so: routing and composition for compiler/plan (no dependency but libc and libm).
PROGRAMS += libtsroutes.so
ROUTES_SRC := $(wildcard routes/*.c)
ROUTES_HDR := $(wildcard routes/*.h routes/tests/*.h) tests/check.h
# Only what tsroutes.h names is visible outside.
ROUTES_FLAGS := -O3 -fno-math-errno -fPIC -shared -fvisibility=hidden

$(BUILD)/libtsroutes.so: $(ROUTES_SRC) $(ROUTES_HDR) routes/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) $(ROUTES_FLAGS) -o $@ $(ROUTES_SRC) -lm

TESTS += routes
ROUTES_TEST_FLAGS := $(SAN) $(WARN) -Iroutes -Itests
ROUTES_COMPARE := $(addprefix routes/tests/,brute.c compare.c)
ROUTES_TEST_SRC := $(ROUTES_SRC) $(ROUTES_COMPARE) routes/tests/main.c $(wildcard routes/tests/test_*.c)
$(BUILD)/test-routes: $(ROUTES_TEST_SRC) $(ROUTES_HDR) routes/rules.mk | $(BUILD)
	$(CC) $(ROUTES_TEST_FLAGS) -o $@ $(ROUTES_TEST_SRC) -lm
test-routes: $(BUILD)/test-routes
	$(BUILD)/test-routes
.PHONY: test-routes

# libFuzzer where clang has it, else random inputs.
FUZZERS += routes
ROUTES_FUZZ_SRC := $(ROUTES_SRC) $(ROUTES_COMPARE) routes/tests/fuzz_routes.c
$(BUILD)/libfuzz-routes: $(ROUTES_FUZZ_SRC) $(ROUTES_HDR) routes/rules.mk | $(BUILD)
	$(FUZZ_CLANG) -fsanitize=fuzzer $(ROUTES_TEST_FLAGS) -o $@ $(ROUTES_FUZZ_SRC) -lm
$(BUILD)/fuzz-routes: $(ROUTES_FUZZ_SRC) routes/tests/fuzz_main.c $(ROUTES_HDR) routes/rules.mk | $(BUILD)
	$(CC) $(ROUTES_TEST_FLAGS) -o $@ $(ROUTES_FUZZ_SRC) routes/tests/fuzz_main.c -lm
fuzz-routes: $(if $(FUZZ_CLANG),$(BUILD)/libfuzz-routes,$(BUILD)/fuzz-routes)
	@mkdir -p $(BUILD)/corpus-routes
	$(if $(FUZZ_CLANG),$< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/ $(BUILD)/corpus-routes,$< $(FUZZ_SECONDS))
.PHONY: fuzz-routes
