# libtcal and tcald: paths by the kernel's traffic control. The protocol's words are pktd's.
PROGRAMS += libtcal.a tcald

TCALD_VERSION ?= 0.1.0
TCALD_ONLY := $(addprefix tcal/,main.c control.c proto.c commands.c report.c stage.c)
TCAL_SOURCES := $(filter-out $(TCALD_ONLY),$(wildcard tcal/*.c))
TCAL_WORDS := $(addprefix pktd/,text.c words.c addr.c)
TCAL_HEADERS := $(wildcard tcal/*.h) $(addprefix pktd/,text.h words.h addr.h common.h quantile.h)
TCAL_FLAGS = $(WARN) -DTCALD_VERSION='"$(TCALD_VERSION)"' -Itcal
TCAL_OBJECTS := $(patsubst tcal/%.c,$(BUILD)/tcal/%.o,$(TCAL_SOURCES))

$(BUILD)/tcal/%.o: tcal/%.c $(TCAL_HEADERS) tcal/rules.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(TCAL_FLAGS) -fPIC -c -o $@ $<
$(BUILD)/libtcal.a: $(TCAL_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(TCAL_OBJECTS)
$(BUILD)/tcald: $(TCALD_ONLY) $(TCAL_WORDS) $(BUILD)/libtcal.a $(TCAL_HEADERS)
	$(CC) $(CFLAGS) $(TCAL_FLAGS) -o $@ $(TCALD_ONLY) $(TCAL_WORDS) $(BUILD)/libtcal.a $(LDFLAGS) -lm

# The tests bring a kernel of their own, in place of socket.c and of probe_netns.c, which need a real one.
TESTS += tcal
TCAL_TESTED := $(filter-out tcal/socket.c tcal/probe_netns.c,$(TCAL_SOURCES)) \
	$(filter-out tcal/main.c tcal/control.c,$(TCALD_ONLY)) $(TCAL_WORDS)
TCAL_BENCH := $(addprefix tcal/tests/,kernel.c bench.c)
TCAL_TEST_SOURCES := $(TCAL_TESTED) $(TCAL_BENCH) tcal/tests/main.c $(wildcard tcal/tests/test_*.c)
TCAL_TEST_HEADERS := $(TCAL_HEADERS) $(wildcard tcal/tests/*.h) tests/check.h
TCAL_TEST_FLAGS = $(SAN) $(TCAL_FLAGS) -Itcal/tests -Itests
$(BUILD)/test-tcal: $(TCAL_TEST_SOURCES) $(TCAL_TEST_HEADERS) tcal/rules.mk | $(BUILD)
	$(CC) $(TCAL_TEST_FLAGS) -o $@ $(TCAL_TEST_SOURCES) -lm
test-tcal: $(BUILD)/test-tcal
	$(BUILD)/test-tcal
.PHONY: test-tcal

# As pktd's: libFuzzer where clang has it, else the driver in fuzz/.
FUZZERS += tcal-protocol tcal-answers
TCAL_FUZZ_SOURCES = $(TCAL_TESTED) $(TCAL_BENCH) fuzz/mutate.c tests/frames.c pktd/draw.c
TCAL_FUZZ_HEADERS = $(TCAL_TEST_HEADERS) $(wildcard fuzz/*.h)
$(BUILD)/libfuzz-tcal-%: tcal/tests/fuzz_%.c fuzz/libfuzzer.c $(TCAL_FUZZ_SOURCES) $(TCAL_FUZZ_HEADERS) | $(BUILD)
	$(FUZZ_CLANG) -fsanitize=fuzzer $(TCAL_TEST_FLAGS) -Ifuzz -Ipktd -o $@ $< fuzz/libfuzzer.c $(TCAL_FUZZ_SOURCES) -lm
$(BUILD)/fuzz-tcal-%: tcal/tests/fuzz_%.c fuzz/driver.c $(TCAL_FUZZ_SOURCES) $(TCAL_FUZZ_HEADERS) | $(BUILD)
	$(CC) $(TCAL_TEST_FLAGS) -Ifuzz -Ipktd -o $@ $< fuzz/driver.c $(TCAL_FUZZ_SOURCES) -lm
fuzz-tcal-%: $(if $(FUZZ_CLANG),$(BUILD)/libfuzz-tcal-%,$(BUILD)/fuzz-tcal-%)
	@mkdir -p $(BUILD)/corpus-tcal-$*
	$(if $(FUZZ_CLANG),$< -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/ $(BUILD)/corpus-tcal-$*,$< $(FUZZ_SECONDS))
.PRECIOUS: $(BUILD)/libfuzz-tcal-% $(BUILD)/fuzz-tcal-%
