# The few commands a developer types. CMake does the building; see CMakePresets.json.
JOBS ?= $(shell nproc)
FORMATTED = $(shell find src include tests bench python -name '*.h' -o -name '*.cpp' 2>/dev/null)

.PHONY: setup build demo test bench format lint clean

build: setup
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release -j $(JOBS)

setup:
	@scripts/setup

demo: build
	@examples/demo.sh

test: build
	ctest --preset release -j $(JOBS)
	cmake --preset asan --log-level=WARNING
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

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
