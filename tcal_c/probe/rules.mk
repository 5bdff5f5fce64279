# tprobe: the measuring program (no dependency but libc).
PROGRAMS += tprobe
PROBE_PARTS := clock say values stats net
PROBE_SRC := $(addprefix probe/,$(addsuffix .c,main serve serve_tcp rtt icmp stream udp owd options $(PROBE_PARTS)))
PROBE_HDR := $(wildcard probe/*.h)

$(BUILD)/tprobe: $(PROBE_SRC) $(PROBE_HDR) probe/rules.mk | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) -o $@ $(PROBE_SRC) -pthread

TESTS += probe
PROBE_TEST_SRC := probe/test_probe.c $(addprefix probe/,$(addsuffix .c,$(PROBE_PARTS)))
$(BUILD)/test-probe: $(PROBE_TEST_SRC) $(PROBE_HDR) probe/rules.mk | $(BUILD)
	$(CC) $(SAN) $(WARN) -o $@ $(PROBE_TEST_SRC)
test-probe: $(BUILD)/test-probe
	$(BUILD)/test-probe
.PHONY: test-probe
