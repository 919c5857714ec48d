# The few commands a developer types. CMake does the building; see CMakePresets.json.
JOBS ?= $(shell nproc)
FORMATTED = $(shell find src include tests bench fuzz examples python cmake -name '*.h' -o -name '*.cpp' 2>/dev/null)

.PHONY: setup build demo wheel test formatted tidied fuzz bench bench-check llama soak serving-soak fleet-tests coverage mutants format lint docs clean
.NOTPARALLEL:

build: setup
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release -j $(JOBS)

setup:
	@scripts/setup program learned serving tests python docs

# The program alone: the first demo waits neither for the tests nor for what they need. It shares
# build/release with the tests, so neither compiles again what the other has.
demo:
	@begin=$$(date +%s); \
	say() { echo "== $$(( $$(date +%s) - begin )) s: $$1"; }; \
	say "installing what the program needs: a compiler, libraries, 280 MB of wheels" && scripts/setup program && \
	{ [ -f build/release/build.ninja ] || cmake --preset program --log-level=WARNING; } && \
	say "building the program (minutes; again only what has changed)" && \
	cmake --build build/release -j $(JOBS) --target placewright_program && \
	DEMO_BEGIN=$$begin examples/demo.sh

# The Python package as a file that `pip install` takes, in dist/.
wheel:
	@scripts/setup program python
	@scripts/wheel dist

# Everything, the cheap checks first. A preset is tested when it is configured, built and its tests
# have passed.
test: setup formatted tidied tested-release tested-asan tested-tsan tested-fuzz

# `make tested-clang` does the same with another compiler (scripts/setup trust).
tested-%:
	cmake --preset $* --log-level=WARNING
	cmake --build --preset $* -j $(JOBS)
	ctest --preset $* -j $(JOBS)

formatted:
	@clang-format --dry-run -Werror $(FORMATTED)

# clang-tidy on the files that changed since they were last recorded; `make lint` looks at all.
tidied:
	@cmake --preset release --log-level=WARNING
	scripts/tidy build/release

# Each reader for FUZZ_SECONDS, one after the other; each prints its number of executions at the
# end.
FUZZ_SECONDS ?= 600
fuzz: setup
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz -j $(JOBS)
	@for source in fuzz/*.cpp; do \
	  name=$$(basename $$source .cpp); echo "== $$name"; fuzz/run build/fuzz/fuzz $$name $(FUZZ_SECONDS) || exit 1; \
	done

bench: build
	@for program in build/release/bench/*_bench; do [ ! -x "$$program" ] || "$$program" || exit 1; done

# Instructions, values and bounds of fixed work beside the recorded ones: `make bench-check
# ONLY=googlenet,check`. bench/recorded.py --record keeps new ones.
bench-check:
	@scripts/setup program bench
	@[ -f build/release/build.ninja ] || cmake --preset program --log-level=WARNING
	@cmake --build build/release -j $(JOBS) --target placewright_program
	@bench/recorded.py --only "$(ONLY)"

# llama.cpp with its RPC servers, in .deps/llama/bin; nothing else needs it. Compiles for minutes.
llama:
	@scripts/setup program llama

# Random problems, seed after seed (tests/soak.py); fills its part of docs/results/trust.md.
MINUTES ?= 60
soak: setup
	@cmake --preset release --log-level=WARNING
	@cmake --build build/release -j $(JOBS) --target evaluate_full_tests bounds_full_tests planning_full_tests planners_full_tests
	@tests/soak.py --minutes $(MINUTES) --jobs $(JOBS) --json build/soak.json
	@scripts/trust-page build/soak.json

# Served requests with faults for MINUTES (tests/serving_soak.py).
serving-soak: build
	@.deps/venv/bin/python tests/serving_soak.py --minutes $(MINUTES) --json build/serving-soak.json

# Fleets on Ray, in an environment of their own: Ray takes 250 MB.
fleet-tests: build
	@[ -x build/ray/bin/pytest ] || { python3 -m venv build/ray && \
	  build/ray/bin/python -m pip install --quiet --disable-pip-version-check "ray[serve]==2.60.0" \
	  $$(grep -E "^(numpy|openvino|pytest)==" scripts/constraints.txt); }
	@PLACEWRIGHT_NATIVE=$(CURDIR)/build/release/python/placewright PLACEWRIGHT_PROGRAM=$(CURDIR)/build/placewright \
	  build/ray/bin/python -m pytest -q -s -p no:cacheprovider tests/python/test_fleet.py

# The lines and branches of src/ that the tests run: `make coverage ONLY=quick` for the quick ones.
coverage: setup
	@scripts/setup trust
	cmake --preset coverage --log-level=WARNING
	cmake --build --preset coverage -j $(JOBS)
	@scripts/coverage --jobs $(JOBS) --only "$(ONLY)" --json build/coverage.json
	@scripts/trust-page build/coverage.json

# Does a quick test notice each changed operator of the evaluators and the verifier, and each of
# some faults as people make them? Takes hours on two cores: scripts/mutants has ways to take less.
mutants: setup
	@scripts/setup trust
	@scripts/mutants build --jobs $(JOBS)
	@scripts/mutants faults --jobs $(JOBS) --json build/faults.json
	@scripts/mutants run --jobs $(JOBS) --json build/mutants.json
	@scripts/trust-page build/faults.json build/mutants.json

format: setup
	@clang-format -i $(FORMATTED)

lint: setup formatted
	@cmake --preset release --log-level=WARNING
	scripts/tidy build/release --all

# The site, in build/site. A link that leads nowhere is an error.
docs:
	@scripts/setup docs
	@NO_MKDOCS_2_WARNING=1 .deps/venv/bin/python -m mkdocs build

clean:
	rm -rf build
