# tstorm-hold: keeps a container's program until its instance joins. Static, so that it runs in any
# image; stripped, since every pod gets a copy. Where there is no static C library it is left out,
# and said: only images need it.
HOLD_STATIC := $(shell echo 'int main(void) { return 0; }' | $(CC) -static -x c -o /dev/null - 2>/dev/null && echo yes)
ifeq ($(HOLD_STATIC),yes)
PROGRAMS += tstorm-hold
else
$(info note: tstorm-hold is not built: $(CC) -static finds no C library (Debian: libc6-dev, Fedora: glibc-static))
endif
HOLD_PARTS := gate order program report clock install send
HOLD_SRC := $(addprefix hold/,$(addsuffix .c,main run $(HOLD_PARTS))) common/signals.c
HOLD_HDR := hold/hold.h common/signals.h

$(BUILD)/tstorm-hold: $(HOLD_SRC) $(HOLD_HDR) hold/rules.mk | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) -static -s -o $@ $(HOLD_SRC)

TESTS += hold
HOLD_TEST_SRC := hold/test_hold.c $(addprefix hold/,$(addsuffix .c,$(HOLD_PARTS))) common/signals.c
$(BUILD)/test-hold: $(HOLD_TEST_SRC) $(HOLD_HDR) hold/rules.mk | $(BUILD)
	$(CC) $(SAN) $(WARN) -o $@ $(HOLD_TEST_SRC)
test-hold: $(BUILD)/test-hold
	$(BUILD)/test-hold
.PHONY: test-hold
