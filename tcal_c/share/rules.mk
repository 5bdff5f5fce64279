# libtsshare.so: sharing links between flows, for runtime/agent (no dependency but libc and libm).
PROGRAMS += libtsshare.so
SHARE_SRC := $(wildcard share/*.c)
SHARE_HDR := $(wildcard share/*.h share/tests/*.h) tests/check.h
# Only what tsshare.h names is visible outside.
SHARE_FLAGS := -O3 -fno-math-errno -fPIC -shared -fvisibility=hidden

$(BUILD)/libtsshare.so: $(SHARE_SRC) $(SHARE_HDR) share/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) $(SHARE_FLAGS) -o $@ $(SHARE_SRC) -lm
