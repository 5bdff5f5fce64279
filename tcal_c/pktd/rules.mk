# pktd, the packet engine: pktd/*.c; its C tests in tests/, its fuzzers in fuzz/.
PROGRAMS += pktd

PKTD_VERSION ?= 0.1.0
PKTD_SOURCES := $(wildcard pktd/*.c)
PKTD_HEADERS := $(wildcard pktd/*.h)
# Everything that needs neither a clock nor a descriptor: what the tests and the fuzzers drive.
PKTD_OUTSIDE := pktd/main.c pktd/control.c pktd/host.c pktd/loop.c pktd/closer.c pktd/port.c pktd/port_tap.c pktd/port_packet.c pktd/port_attach.c
PKTD_CORE := $(filter-out $(PKTD_OUTSIDE),$(PKTD_SOURCES))
PKTD_FLAGS = $(WARN) -DPKTD_VERSION='"$(PKTD_VERSION)"' -Ipktd -pthread

$(BUILD)/pktd: $(PKTD_SOURCES) $(PKTD_HEADERS) pktd/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(PKTD_FLAGS) -o $@ $(PKTD_SOURCES) $(LDFLAGS) -lm

TESTS += pktd
PKTD_SAN := $(patsubst pktd/%.c,$(BUILD)/pktd-san/%.o,$(PKTD_CORE))
PKTD_TEST_SOURCES := $(wildcard tests/*.c)
$(BUILD)/pktd-san/%.o: pktd/%.c $(PKTD_HEADERS) pktd/rules.mk
	@mkdir -p $(@D)
	$(CC) $(SAN) $(PKTD_FLAGS) -c -o $@ $<
$(BUILD)/test-pktd: $(PKTD_TEST_SOURCES) $(wildcard tests/*.h) $(PKTD_SAN)
	$(CC) $(SAN) $(PKTD_FLAGS) -Itests -o $@ $(PKTD_TEST_SOURCES) $(PKTD_SAN) -lm
test-pktd: $(BUILD)/test-pktd
	$(BUILD)/test-pktd
.PHONY: test-pktd

# libFuzzer where clang has it, else the mutation driver in fuzz/ (FUZZ_CLANG= forces the driver).
FUZZERS += pktd-protocol pktd-packets
FUZZ_SECONDS ?= 20
FUZZ_CLANG ?= $(shell echo 'int LLVMFuzzerTestOneInput(void);int LLVMFuzzerTestOneInput(void){return 0;}' \
	| clang -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null && echo clang)
PKTD_FUZZ_SOURCES = $(PKTD_CORE) tests/sim.c tests/frames.c
PKTD_FUZZ_HEADERS = $(PKTD_HEADERS) $(wildcard tests/*.h fuzz/*.h)
$(BUILD)/libfuzz-pktd-%: fuzz/fuzz_%.c fuzz/libfuzzer.c fuzz/mutate.c $(PKTD_FUZZ_SOURCES) $(PKTD_FUZZ_HEADERS) | $(BUILD)
	$(FUZZ_CLANG) $(SAN) -fsanitize=fuzzer $(PKTD_FLAGS) -Itests -Ifuzz -o $@ $< fuzz/libfuzzer.c fuzz/mutate.c \
		$(PKTD_FUZZ_SOURCES) -lm
$(BUILD)/fuzz-pktd-%: fuzz/fuzz_%.c fuzz/driver.c fuzz/mutate.c $(PKTD_FUZZ_SOURCES) $(PKTD_FUZZ_HEADERS) | $(BUILD)
	$(CC) $(SAN) $(PKTD_FLAGS) -Itests -Ifuzz -o $@ $< fuzz/driver.c fuzz/mutate.c \
		$(PKTD_FUZZ_SOURCES) -lm
fuzz-pktd-%: $(if $(FUZZ_CLANG),$(BUILD)/libfuzz-pktd-%,$(BUILD)/fuzz-pktd-%)
	@mkdir -p $(BUILD)/corpus-pktd-$*
	$(if $(FUZZ_CLANG),$< -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/ $(BUILD)/corpus-pktd-$*,$< $(FUZZ_SECONDS))
.PRECIOUS: $(BUILD)/libfuzz-pktd-% $(BUILD)/fuzz-pktd-%
