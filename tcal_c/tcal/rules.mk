# libtcal and tcald: paths by the kernel's traffic control. The protocol's words are pktd's.
PROGRAMS += libtcal.a tcald

TCALD_VERSION ?= 0.1.0
TCALD_ONLY := $(addprefix tcal/,main.c control.c proto.c commands.c report.c stage.c)
TCAL_SOURCES := $(filter-out $(TCALD_ONLY),$(wildcard tcal/*.c))
TCAL_WORDS := $(addprefix pktd/,text.c words.c addr.c)
TCAL_HEADERS := $(wildcard tcal/*.h) $(addprefix pktd/,text.h words.h addr.h common.h)
TCAL_FLAGS = $(WARN) -DTCALD_VERSION='"$(TCALD_VERSION)"' -Itcal -Ipktd
TCAL_OBJECTS := $(patsubst tcal/%.c,$(BUILD)/tcal/%.o,$(TCAL_SOURCES))

$(BUILD)/tcal/%.o: tcal/%.c $(TCAL_HEADERS) tcal/rules.mk Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(TCAL_FLAGS) -fPIC -c -o $@ $<
$(BUILD)/libtcal.a: $(TCAL_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(TCAL_OBJECTS)
$(BUILD)/tcald: $(TCALD_ONLY) $(TCAL_WORDS) $(BUILD)/libtcal.a $(TCAL_HEADERS)
	$(CC) $(CFLAGS) $(TCAL_FLAGS) -o $@ $(TCALD_ONLY) $(TCAL_WORDS) $(BUILD)/libtcal.a $(LDFLAGS) -lm
