# pktd, the packet engine: pktd/*.c; its C tests in tests/, its fuzzers in fuzz/.
PROGRAMS += pktd

PKTD_VERSION ?= 0.1.0
PKTD_SOURCES := $(wildcard pktd/*.c)
PKTD_HEADERS := $(wildcard pktd/*.h)
# Everything that needs neither a clock nor a descriptor: what the tests and the fuzzers drive.
PKTD_OUTSIDE := pktd/main.c pktd/control.c pktd/loop.c pktd/port.c pktd/port_tap.c pktd/port_packet.c
PKTD_CORE := $(filter-out $(PKTD_OUTSIDE),$(PKTD_SOURCES))
PKTD_FLAGS = $(WARN) -DPKTD_VERSION='"$(PKTD_VERSION)"' -Ipktd -pthread

$(BUILD)/pktd: $(PKTD_SOURCES) $(PKTD_HEADERS) pktd/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(PKTD_FLAGS) -o $@ $(PKTD_SOURCES) $(LDFLAGS) -lm
