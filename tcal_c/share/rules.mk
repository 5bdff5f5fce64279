# libtsshare.so: sharing links between flows, for runtime/agent (no dependency but libc and libm).
PROGRAMS += libtsshare.so
SHARE_SRC := $(wildcard share/*.c)
SHARE_HDR := $(wildcard share/*.h share/tests/*.h) tests/check.h
# Only what tsshare.h names is visible outside.
SHARE_FLAGS := -O3 -fno-math-errno -fPIC -shared -fvisibility=hidden

$(BUILD)/libtsshare.so: $(SHARE_SRC) $(SHARE_HDR) share/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) $(SHARE_FLAGS) -o $@ $(SHARE_SRC) -lm

TESTS += share
SHARE_TEST_FLAGS := $(SAN) $(WARN) -Ishare -Itests
SHARE_PROOF := share/tests/shares.c
SHARE_TEST_SRC := $(SHARE_SRC) $(SHARE_PROOF) share/tests/main.c $(wildcard share/tests/test_*.c)
$(BUILD)/test-share: $(SHARE_TEST_SRC) $(SHARE_HDR) share/rules.mk | $(BUILD)
	$(CC) $(SHARE_TEST_FLAGS) -o $@ $(SHARE_TEST_SRC) -lm
test-share: $(BUILD)/test-share
	$(BUILD)/test-share
.PHONY: test-share

# libFuzzer where clang has it, else random inputs.
FUZZERS += share
SHARE_FUZZ_SRC := $(SHARE_SRC) $(SHARE_PROOF) share/tests/fuzz_solve.c
$(BUILD)/libfuzz-share: $(SHARE_FUZZ_SRC) $(SHARE_HDR) share/rules.mk | $(BUILD)
	$(FUZZ_CLANG) -fsanitize=fuzzer $(SHARE_TEST_FLAGS) -o $@ $(SHARE_FUZZ_SRC) -lm
$(BUILD)/fuzz-share: $(SHARE_FUZZ_SRC) routes/tests/fuzz_main.c $(SHARE_HDR) share/rules.mk | $(BUILD)
	$(CC) $(SHARE_TEST_FLAGS) -o $@ $(SHARE_FUZZ_SRC) routes/tests/fuzz_main.c -lm
fuzz-share: $(if $(FUZZ_CLANG),$(BUILD)/libfuzz-share,$(BUILD)/fuzz-share)
	@mkdir -p $(BUILD)/corpus-share
	$(if $(FUZZ_CLANG),$< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/ $(BUILD)/corpus-share,$< $(FUZZ_SECONDS))
.PHONY: fuzz-share
