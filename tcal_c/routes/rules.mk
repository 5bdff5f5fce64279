# libtsroutes.so: routing and composition for compiler/plan (no dependency but libc).
PROGRAMS += libtsroutes.so
ROUTES_SRC := $(filter-out $(wildcard routes/test_*.c),$(wildcard routes/*.c))
ROUTES_HDR := $(wildcard routes/*.h)
# Other objects must not meet our helpers; the arithmetic is worth -O3.
ROUTES_FLAGS := -O3 -fPIC -shared -fvisibility=hidden

$(BUILD)/libtsroutes.so: $(ROUTES_SRC) $(ROUTES_HDR) routes/rules.mk Makefile | $(BUILD)
	$(CC) $(CFLAGS) $(WARN) $(ROUTES_FLAGS) -o $@ $(ROUTES_SRC) -lm
