# The few commands a developer types. CMake does the building; see CMakePresets.json.
JOBS ?= $(shell nproc)
FORMATTED = $(shell find src include tests bench fuzz examples python -name '*.h' -o -name '*.cpp' 2>/dev/null)

.PHONY: setup build demo test fuzz bench format lint clean

build: setup
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release -j $(JOBS)

setup:
	@scripts/setup program tests

# The program alone: the first demo waits neither for the tests nor for what they need. It shares build/release with the
# tests, so neither compiles again what the other has.
demo:
	@scripts/setup program
	@[ -f build/release/build.ninja ] || cmake --preset program --log-level=WARNING
	@cmake --build build/release -j $(JOBS) --target placewright_program
	@examples/demo.sh

test: build
	ctest --preset release -j $(JOBS)
	cmake --preset asan --log-level=WARNING
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz -j $(JOBS)
	ctest --preset fuzz -j $(JOBS)

# Each reader for FUZZ_SECONDS, one after the other; each prints its number of executions at the end.
FUZZ_SECONDS ?= 600
fuzz: setup
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz -j $(JOBS)
	@for source in fuzz/*.cpp; do \
	  name=$$(basename $$source .cpp); echo "== $$name"; fuzz/run build/fuzz/fuzz $$name $(FUZZ_SECONDS) || exit 1; \
	done

bench: build
	@for program in build/release/bench/*_bench; do [ ! -x "$$program" ] || "$$program" || exit 1; done

format: setup
	@clang-format -i $(FORMATTED)

lint: setup
	clang-format --dry-run -Werror $(FORMATTED)
	cmake --preset dev --log-level=WARNING
	find src -name '*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p build/dev

clean:
	rm -rf build
