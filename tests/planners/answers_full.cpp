// All planners on small problems, and what their answers must satisfy together (answers.h). A
// failure is shrunk to a small problem file by itself. `make soak` counts a million answers.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "solvers/cp_sat.h"
#include "support/answers.h"
#include "support/random_cases.h"
#include "support/shrink.h"
#include "support/small_problem.h"
#include "support/test_name.h"

namespace placewright::testing {
namespace {

class Answers : public ::testing::TestWithParam<Objective> {
 public:
  void TearDown() override {
    std::uint64_t all = 0;
    for (const auto& [planner, count] : counts_) {
      fmt::print("answers of {} for {}: {}\n", planner, placewright::name_of(GetParam()), count);
      all += count;
    }
    fmt::print("planner answers: {}\n", all);
  }

 protected:
  void count(const Asked& asked) {
    for (const auto& [planner, count] : asked.answers) counts_[planner] += count;
  }

 private:
  std::map<std::string, std::uint64_t> counts_;
};

// Says what is wrong, and keeps the smallest problem on which the same planner still is.
void report(const Problem& problem, std::uint64_t seed, const Fault& fault) {
  const ProblemDraft small = shrunk(problem.draft(), [&](const Problem& other) {
    const Asked again = ask_all(other, seed);
    return std::ranges::any_of(again.faults,
                               [&](const Fault& each) { return each.planner == fault.planner; });
  });
  const std::string path = keep_found(small, fmt::format("{}-{}", fault.planner, seed));
  ADD_FAILURE() << fault.planner << ", seed " << seed << ": " << fault.what
                << "\n  a small problem of this kind: " << path;
}

TEST_P(Answers, OfAllPlannersAgree) {
  for (const std::uint64_t seed : random_cases(200)) {
    const std::optional<Problem> problem = small_problem(GetParam(), seed);
    if (!problem) continue;
    const Asked asked = ask_all(*problem, seed);
    count(asked);
    if (!asked.faults.empty()) report(*problem, seed, asked.faults.front());
  }
}

TEST_P(Answers, TellTheTruthWhenInterrupted) {
  for (const std::uint64_t seed : random_cases(40)) {
    const std::optional<Problem> problem = small_problem(GetParam(), seed);
    if (!problem) continue;
    std::atomic<bool> interrupted{false};
    const std::jthread interrupting([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(seed % 37 * 500));
      interrupted = true;
    });
    const Asked asked = ask_all(*problem, seed, &interrupted);
    count(asked);
    for (const Fault& fault : asked.faults) {
      ADD_FAILURE() << fault.planner << ", seed " << seed << ": " << fault.what << "\n  "
                    << keep_found(problem->draft(), fmt::format("interrupted-{}", seed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, Answers,
                         ::testing::Values(Objective::latency, Objective::total_completion,
                                           Objective::throughput, Objective::call_latency),
                         [](const auto& test) {
                           return test_name(std::string{placewright::name_of(test.param)});
                         });

// Planners without their solver refuse politely, and a suite of refusals passes. This does not.
TEST(Solvers, AreThere) {
  EXPECT_TRUE(solvers::cp_sat_available()) << solvers::cp_sat_load_error();
}

}  // namespace
}  // namespace placewright::testing
