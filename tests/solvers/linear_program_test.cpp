#include "solvers/linear_program.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace placewright::solvers {
namespace {

// A market-split problem: easy to state, far beyond any solver in the time of a test.
LinearProgram hard_program() {
  std::mt19937 random(7);
  LinearProgram program;
  constexpr int kVariables = 50;
  for (int j = 0; j < kVariables; ++j) program.add_variable(0, 1, 0, Integrality::integer);
  for (int i = 0; i < 6; ++i) {
    std::vector<LinearTerm> terms;
    double total = 0;
    for (int j = 0; j < kVariables; ++j) {
      terms.push_back({j, static_cast<double>(random() % 100)});
      total += terms.back().coefficient;
    }
    terms.push_back({program.add_variable(0, kUnbounded, 1), 1.0});
    terms.push_back({program.add_variable(0, kUnbounded, 1), -1.0});
    program.add_row(std::floor(total / 2), std::floor(total / 2), terms);
  }
  return program;
}

TEST(LinearProgram, SolvesAnLpWithDuals) {
  LinearProgram program;  // maximise 3x + 5y: x <= 4, 2y <= 12, 3x + 2y <= 18
  const int x = program.add_variable(0, kUnbounded, -3);
  const int y = program.add_variable(0, kUnbounded, -5);
  program.add_row(-kUnbounded, 4, std::vector<LinearTerm>{{x, 1}});
  program.add_row(-kUnbounded, 12, std::vector<LinearTerm>{{y, 1}, {y, 1}});
  program.add_row(-kUnbounded, 18, std::vector<LinearTerm>{{x, 3}, {y, 2}});
  const LinearResult result = program.solve();
  ASSERT_EQ(result.status, LinearStatus::optimal);
  EXPECT_NEAR(result.objective, -36, 1e-9);
  EXPECT_NEAR(result.dual_bound, -36, 1e-9);
  EXPECT_NEAR(result.values[0], 2, 1e-9);
  EXPECT_NEAR(result.values[1], 6, 1e-9);
  ASSERT_EQ(result.row_duals.size(), 3U);
  EXPECT_NEAR(result.row_duals[0], 0, 1e-9);
  EXPECT_NEAR(result.row_duals[1], -1.5, 1e-9);
  EXPECT_NEAR(result.row_duals[2], -1, 1e-9);
}

TEST(LinearProgram, SaysInfeasibleAndUnbounded) {
  LinearProgram infeasible;
  const int x = infeasible.add_variable(0, 1, 1);
  infeasible.add_row(2, kUnbounded, std::vector<LinearTerm>{{x, 1}});
  EXPECT_EQ(infeasible.solve().status, LinearStatus::infeasible);

  LinearProgram infeasible_integer;
  const int n = infeasible_integer.add_variable(0, 10, -1, Integrality::integer);
  infeasible_integer.add_row(1, 1, std::vector<LinearTerm>{{n, 2}});
  EXPECT_EQ(infeasible_integer.solve().status, LinearStatus::infeasible);

  LinearProgram unbounded;
  unbounded.add_variable(0, kUnbounded, -1);
  EXPECT_EQ(unbounded.solve().status, LinearStatus::unbounded);

  LinearProgram crossed;
  crossed.add_variable(1, 0, 0);
  EXPECT_EQ(crossed.solve().status, LinearStatus::infeasible);
}

TEST(LinearProgram, AnswersWithoutVariablesOrRows) {
  LinearProgram empty;
  EXPECT_EQ(empty.solve().status, LinearStatus::optimal);
  empty.add_row(1, 2, {});
  EXPECT_EQ(empty.solve().status, LinearStatus::infeasible);
  LinearProgram no_rows;
  no_rows.add_variable(2, 5, 1);
  EXPECT_NEAR(no_rows.solve().objective, 2, 1e-9);
}

TEST(LinearProgram, ReportsWrongCalls) {
  LinearProgram program;
  program.add_row(0, 1, std::vector<LinearTerm>{{3, 1}});
  const LinearResult result = program.solve();
  EXPECT_EQ(result.status, LinearStatus::error);
  EXPECT_EQ(result.error, "no variable 3");

  LinearProgram not_a_number;
  not_a_number.add_variable(0, 1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(not_a_number.solve().status, LinearStatus::error);
}

// Cutting stock by column generation: widths 3, 5, 7 in rolls of 16, demands 25, 20, 18.
TEST(LinearProgram, GrowsByColumnsBetweenSolves) {
  const std::vector<int> widths = {3, 5, 7};
  const std::vector<double> demands = {25, 20, 18};
  LinearProgram program;
  for (const double demand : demands) program.add_row(demand, kUnbounded, {});
  for (int i = 0; i < 3; ++i) {
    program.add_column(
        0, kUnbounded, 1,
        std::vector<ColumnEntry>{{i, std::floor(16.0 / widths[static_cast<std::size_t>(i)])}});
  }
  LinearResult result;
  for (int round = 0; round < 20; ++round) {
    result = program.solve();
    ASSERT_EQ(result.status, LinearStatus::optimal);
    double best = 1 + 1e-9;
    std::vector<ColumnEntry> pattern;
    for (int a = 0; a * 3 <= 16; ++a) {
      for (int b = 0; a * 3 + b * 5 <= 16; ++b) {
        const int c = (16 - a * 3 - b * 5) / 7;
        const double worth =
            a * result.row_duals[0] + b * result.row_duals[1] + c * result.row_duals[2];
        if (worth <= best) continue;
        best = worth;
        pattern = {{0, double(a)}, {1, double(b)}, {2, double(c)}};
      }
    }
    if (pattern.empty()) break;
    program.add_column(0, kUnbounded, 1, pattern);
  }

  // The same with every pattern from the start.
  LinearProgram whole;
  for (const double demand : demands) whole.add_row(demand, kUnbounded, {});
  for (int a = 0; a * 3 <= 16; ++a) {
    for (int b = 0; a * 3 + b * 5 <= 16; ++b) {
      const int c = (16 - a * 3 - b * 5) / 7;
      whole.add_column(0, kUnbounded, 1,
                       std::vector<ColumnEntry>{{0, double(a)}, {1, double(b)}, {2, double(c)}});
    }
  }
  EXPECT_NEAR(result.objective, whole.solve().objective, 1e-7);
}

TEST(LinearProgram, ChangesBetweenSolves) {
  LinearProgram program;
  const int x = program.add_variable(0, 10, -1);
  const int row = program.add_row(-kUnbounded, 6, std::vector<LinearTerm>{{x, 2}});
  EXPECT_NEAR(program.solve().objective, -3, 1e-9);
  program.set_row_bounds(row, -kUnbounded, 8);
  EXPECT_NEAR(program.solve().objective, -4, 1e-9);
  program.set_coefficient(row, x, 1);
  EXPECT_NEAR(program.solve().objective, -8, 1e-9);
  program.set_bounds(x, 0, 5);
  EXPECT_NEAR(program.solve().objective, -5, 1e-9);
  program.set_cost(x, 1);
  EXPECT_NEAR(program.solve().objective, 0, 1e-9);
  program.add_row(2, kUnbounded, std::vector<LinearTerm>{{x, 1}});
  EXPECT_NEAR(program.solve().objective, 2, 1e-9);
  // The variables so far are continuous; an integer one that comes late makes it a MIP.
  const int n = program.add_variable(0, 10, -1, Integrality::integer);
  program.add_row(-kUnbounded, 3, std::vector<LinearTerm>{{n, 2}});
  EXPECT_NEAR(program.solve().objective, 1, 1e-9);
}

TEST(LinearProgram, StopsAtTheTimeLimit) {
  LinearProgram program = hard_program();
  LinearLimits limits;
  limits.time_seconds = 0.2;
  for (int run = 0; run < 2; ++run) {  // the limit is per solve, not for all of them together
    const LinearResult result = program.solve(limits);
    EXPECT_TRUE(result.status == LinearStatus::feasible || result.status == LinearStatus::limit);
    if (result.has_solution()) {
      EXPECT_LE(result.dual_bound, result.objective + 1e-9);
    }
  }
}

TEST(LinearProgram, StopsWhenTold) {
  LinearProgram program = hard_program();
  std::atomic<bool> stop = false;
  LinearLimits limits;
  limits.stop = &stop;
  limits.time_seconds = 1e6;
  std::jthread alarm([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop = true;
  });
  const LinearResult result = program.solve(limits);
  EXPECT_TRUE(result.status == LinearStatus::feasible || result.status == LinearStatus::limit);
  EXPECT_EQ(program.solve(limits).status, LinearStatus::limit);  // the flag is still set
}

TEST(LinearProgram, KeepsAFeasibleStart) {
  LinearProgram program = hard_program();
  std::vector<double> start(static_cast<std::size_t>(program.variables()),
                            std::numeric_limits<double>::quiet_NaN());
  for (std::size_t j = 0; j < 50; ++j) start[j] = j % 2 == 0 ? 1 : 0;
  program.set_start(start);  // the slacks are left to the solver
  LinearLimits limits;
  limits.node_limit = 0;
  limits.time_seconds = 30;
  int reports = 0;
  const LinearResult result = program.solve(limits, [&](const LinearProgress& state) {
    if (!state.values.empty()) ++reports;
  });
  EXPECT_TRUE(result.has_solution());
  EXPECT_GE(reports, 1);
}

TEST(LinearProgram, ThrowsWhatTheProgressCallbackThrew) {
  for (const int threads : {1, 2}) {
    LinearProgram program = hard_program();
    LinearLimits limits;
    limits.time_seconds = 30;
    limits.threads = threads;
    int calls = 0;
    const auto solve = [&] {
      (void)program.solve(limits, [&](const LinearProgress&) {
        ++calls;
        throw std::runtime_error("the observer failed");
      });
    };
    EXPECT_THROW(solve(), std::runtime_error);
    EXPECT_EQ(calls, 1);  // not called again on the way out
    limits.time_seconds = 0.2;
    const LinearResult again = program.solve(limits);
    EXPECT_NE(again.status, LinearStatus::error) << again.error;
  }
}

TEST(LinearProgram, WorksWithChangingThreadCounts) {
  for (const int threads : {1, 2, 1}) {
    LinearProgram program;
    std::vector<LinearTerm> terms;
    for (int j = 0; j < 10; ++j) {
      terms.push_back({program.add_variable(0, 1, -1.0 - j, Integrality::integer), 2.0 + j});
    }
    program.add_row(-kUnbounded, 20, terms);
    LinearLimits limits;
    limits.threads = threads;
    EXPECT_EQ(program.solve(limits).status, LinearStatus::optimal);
  }
}

}  // namespace
}  // namespace placewright::solvers
