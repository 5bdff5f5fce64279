# tstorm-ns: namespaces for a run and its instances (no dependency but libc).
PROGRAMS += tstorm-ns
NS_SRC := $(addprefix ns/,$(addsuffix .c,main sandbox nursery instance program enter in message process)) common/signals.c
NS_HDR := $(wildcard ns/*.h) common/signals.h

$(BUILD)/tstorm-ns: $(NS_SRC) $(NS_HDR) ns/rules.mk | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) -o $@ $(NS_SRC)

TESTS += ns
NS_TEST_SRC := $(addprefix ns/,test_ns.c program.c message.c process.c) common/signals.c
$(BUILD)/test-ns: $(NS_TEST_SRC) $(NS_HDR) ns/rules.mk | $(BUILD)
	$(CC) $(SAN) $(WARN) -o $@ $(NS_TEST_SRC)
test-ns: $(BUILD)/test-ns
	$(BUILD)/test-ns
.PHONY: test-ns
