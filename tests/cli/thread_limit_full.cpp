// More threads than the system gives: the program goes on with those there are.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

// Less address space for this process and those it starts, while it lives. Threads have stacks of
// 8 MiB, so some hundreds can be made; a limit on their number itself does not bind root.
class LessAddressSpace {
 public:
  explicit LessAddressSpace(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit less{bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &less);
  }
  ~LessAddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  LessAddressSpace(const LessAddressSpace&) = delete;
  LessAddressSpace& operator=(const LessAddressSpace&) = delete;

 private:
  rlimit before_{};
};

ProgramResult run_with_900_threads(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--threads", "900", "--time-limit", "2s", "--quiet"});
  const LessAddressSpace limit(rlim_t{4} << 30U);
  return run(arguments);
}

TEST(ThreadLimit, PlannersGoOnWithTheThreadsThereAre) {
  const std::string latency = example_path("moirai/GoogLeNet.json");
  for (const char* planner : {"search", "decompose", "moirai"}) {
    const auto result = run_with_900_threads({"plan", latency, "--planner", planner});
    EXPECT_EQ(result.exit_code, 0) << planner << ": " << result.err;
  }
}

TEST(ThreadLimit, SearchInCallsGoesOnWithTheThreadsThereAre) {
  const auto result =
      run_with_900_threads({"plan", example_path("msr/latency/LayerGraphs/bert24_inference.json"),
                            "--objective", "call-latency", "--planner", "calls-search"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(ThreadLimit, WhatIfGoesOnWithTheThreadsThereAre) {
  std::string factors = "1";
  for (int i = 2; i <= 600; ++i) factors += "," + std::to_string(i);
  const auto result = run_with_900_threads({"whatif", example_path("moirai/example-1.json"),
                                            "--planner", "heft", "--bandwidth", factors});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace placewright::testing
