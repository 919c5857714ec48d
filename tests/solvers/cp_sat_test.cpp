#include "solvers/cp_sat.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace placewright::solvers {
namespace {

// A job shop of `jobs` x `machines` with random times.
CpModel job_shop(int jobs, int machines, unsigned seed) {
  std::mt19937 random(seed);
  CpModel model;
  std::vector<std::vector<CpInterval>> on_machine(static_cast<std::size_t>(machines));
  const CpVariable makespan = model.add_integer(0, 100000);
  for (int job = 0; job < jobs; ++job) {
    CpVariable previous{};
    std::int64_t previous_size = -1;
    std::vector<std::size_t> route(static_cast<std::size_t>(machines));
    for (std::size_t i = 0; i < route.size(); ++i) route[i] = i;
    std::shuffle(route.begin(), route.end(), random);
    for (const std::size_t machine : route) {
      const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 99);
      const CpVariable start = model.add_integer(0, 100000);
      on_machine[machine].push_back(model.add_interval(start, size));
      if (previous_size >= 0) {
        model.add_linear({{{start, 1}, {previous, -1}}, 0}, CpRange{previous_size, kCpMaximum});
      }
      previous = start;
      previous_size = size;
    }
    model.add_linear({{{makespan, 1}, {previous, -1}}, 0}, CpRange{previous_size, kCpMaximum});
  }
  for (const auto& intervals : on_machine) model.add_no_overlap(intervals);
  model.minimize(makespan);
  return model;
}

class CpSat : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cp_sat_available()) << cp_sat_load_error(); }
};

TEST_F(CpSat, SolvesALinearModel) {
  CpModel model;
  const CpVariable x = model.add_integer(0, 10);
  const CpVariable y = model.add_integer(std::vector<CpRange>{{-3, -2}, {4, 9}});
  model.add_linear({{{x, 2}, {y, 1}}, 1}, CpRange{8, kCpMaximum});  // 2x + y + 1 >= 8
  model.minimize({{{x, 3}, {y, 2}}, 100});
  const CpResult result = cp_sat_solve(model);
  ASSERT_EQ(result.status, CpStatus::optimal) << result.error;
  // x = 5, y = -3 gives 109; y = -2 needs x = 5 as well; y >= 4 needs x >= 2 and costs 114 at
  // least.
  EXPECT_EQ(result.value(x), 5);
  EXPECT_EQ(result.value(y), -3);
  EXPECT_DOUBLE_EQ(result.objective, 109);
  EXPECT_DOUBLE_EQ(result.best_bound, 109);
}

TEST_F(CpSat, SaysInfeasible) {
  CpModel model;
  const CpVariable a = model.add_bool();
  const CpVariable b = model.add_bool();
  model.add_exactly_one(std::array<CpLiteral, 2>{a, b});
  model.add_bool_or(std::array<CpLiteral, 1>{!CpLiteral(a)});
  model.add_bool_or(std::array<CpLiteral, 1>{!CpLiteral(b)});
  const CpResult result = cp_sat_solve(model);
  EXPECT_EQ(result.status, CpStatus::infeasible);
  EXPECT_FALSE(result.has_solution());
}

TEST_F(CpSat, ReportsAnInvalidModel) {
  CpModel model;
  const CpVariable x = model.add_integer(5, 4);
  model.minimize(x);
  const CpResult result = cp_sat_solve(model);
  EXPECT_EQ(result.status, CpStatus::error);
  EXPECT_NE(result.error.find("CP-SAT rejects the model"), std::string::npos);
}

TEST_F(CpSat, SolvesAnEmptyModel) {
  EXPECT_EQ(cp_sat_solve(CpModel()).status, CpStatus::optimal);
}

// Two machines; each of four tasks (4, 3, 2, 3) runs on one of them: makespan 6.
TEST_F(CpSat, ChoosesOptionalIntervals) {
  CpModel model;
  const std::array<std::int64_t, 4> sizes = {4, 3, 2, 3};
  std::array<std::vector<CpInterval>, 2> on_machine;
  std::vector<CpExpression> ends;
  for (const std::int64_t size : sizes) {
    const CpVariable start = model.add_integer(0, 20);
    std::vector<CpLiteral> choice;
    for (auto& intervals : on_machine) {
      const CpVariable here = model.add_bool();
      choice.emplace_back(here);
      intervals.push_back(model.add_interval(start, size, CpLiteral(here)));
    }
    model.add_exactly_one(choice);
    ends.push_back({{{start, 1}}, size});
  }
  for (const auto& intervals : on_machine) model.add_no_overlap(intervals);
  const CpVariable makespan = model.add_integer(0, 20);
  model.add_maximum(makespan, ends);
  model.minimize(makespan);
  const CpResult result = cp_sat_solve(model);
  ASSERT_EQ(result.status, CpStatus::optimal) << result.error;
  EXPECT_EQ(result.value(makespan), 6);
}

// Tasks of demand 2, 2, 1 on capacity 3: the first two exclude each other, the third fits beside
// either.
TEST_F(CpSat, KeepsACumulativeWithinCapacity) {
  CpModel model;
  std::vector<CpInterval> intervals;
  std::vector<CpExpression> ends;
  for (int i = 0; i < 3; ++i) {
    const CpVariable start = model.add_integer(0, 30);
    const CpVariable size = model.add_integer(5, 9);
    const CpVariable end = model.add_integer(0, 30);
    intervals.push_back(model.add_interval(start, size, end));
    ends.emplace_back(end);
  }
  model.add_cumulative(3, intervals, std::array<CpExpression, 3>{2, 2, 1});
  const CpVariable makespan = model.add_integer(0, 30);
  model.add_maximum(makespan, ends);
  model.minimize(makespan);
  const CpResult result = cp_sat_solve(model);
  ASSERT_EQ(result.status, CpStatus::optimal) << result.error;
  EXPECT_EQ(result.value(makespan), 10);
}

TEST_F(CpSat, EnforcesOnlyWhereTold) {
  CpModel model;
  const CpVariable on = model.add_bool();
  const CpVariable other = model.add_bool();
  const CpVariable x = model.add_integer(0, 10);
  model.add_linear(x, CpRange{7, 10}, std::array<CpLiteral, 1>{on});
  model.add_bool_and(std::array<CpLiteral, 1>{on}, std::array<CpLiteral, 1>{other});
  model.add_at_most_one(std::array<CpLiteral, 2>{!CpLiteral(on), !CpLiteral(other)});
  model.minimize(x);
  const CpResult result = cp_sat_solve(model);
  ASSERT_EQ(result.status, CpStatus::optimal) << result.error;
  // on = 0 forces other = 0, and then two negations are true: so on = 1 and x = 7.
  EXPECT_EQ(result.value(x), 7);
  EXPECT_TRUE(result.value(CpLiteral(on)));
  EXPECT_FALSE(result.value(!CpLiteral(on)));
}

TEST_F(CpSat, IsReproducibleWithOneWorker) {
  const CpModel model = job_shop(12, 8, 3);
  CpLimits limits;
  limits.deterministic_time = 0.3;
  limits.seed = 5;
  const CpResult first = cp_sat_solve(model, limits);
  const CpResult second = cp_sat_solve(model, limits);
  EXPECT_EQ(first.status, second.status);
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(first.best_bound, second.best_bound);
}

TEST_F(CpSat, StartsFromAHintAndKeepsALog) {
  CpModel model = job_shop(6, 6, 1);
  CpLimits limits;
  limits.time_seconds = 30;
  limits.keep_log = true;
  const CpResult free = cp_sat_solve(model, limits);
  ASSERT_TRUE(free.has_solution());
  EXPECT_FALSE(free.log.empty());
  for (int i = 0; i < model.variables(); ++i) {
    model.set_hint({i}, free.values[static_cast<std::size_t>(i)]);
  }
  limits.deterministic_time = 0.01;
  const CpResult hinted = cp_sat_solve(model, limits);
  ASSERT_TRUE(hinted.has_solution());
  EXPECT_EQ(hinted.objective, free.objective);
}

TEST_F(CpSat, StopsAtTheTimeLimit) {
  CpLimits limits;
  limits.time_seconds = 0.2;
  const CpResult result = cp_sat_solve(job_shop(40, 20, 2), limits);
  EXPECT_TRUE(result.status == CpStatus::feasible || result.status == CpStatus::unknown);
}

TEST_F(CpSat, StopsWhenTold) {
  std::atomic<bool> stop = false;
  CpLimits limits;
  limits.time_seconds = 1e6;
  limits.stop = &stop;
  std::jthread alarm([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop = true;
  });
  const CpResult result = cp_sat_solve(job_shop(40, 20, 2), limits);
  EXPECT_TRUE(result.status == CpStatus::feasible || result.status == CpStatus::unknown);
  EXPECT_EQ(cp_sat_solve(job_shop(3, 3, 2), limits).status, CpStatus::unknown);  // still set
}

// In a process of its own, because the library is loaded once.
TEST(CpSatDeathTest, AnswersClearlyWithoutTheLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("PLACEWRIGHT_ORTOOLS_LIB", "/nowhere/libortools.so", 1);
        const CpResult result = cp_sat_solve(CpModel());
        const bool clear = !cp_sat_available() && result.status == CpStatus::error &&
                           result.error.find("/nowhere/libortools.so") != std::string::npos;
        std::exit(clear ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace placewright::solvers
