// What a plan file says of its plan: bound, gap and status beside the value.

#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "verify/verifier.h"

namespace placewright {
namespace {

std::set<std::string> codes(const Statement& statement, double value) {
  std::set<std::string> found;
  for (const Violation& violation : verify(statement, value)) {
    found.emplace(name_of(violation.code));
  }
  return found;
}

using Codes = std::set<std::string>;

TEST(Statement, FitsTheValue) {
  EXPECT_EQ(codes({Status::optimal, 4, 0}, 4), Codes{});
  EXPECT_EQ(codes({Status::optimal, 4 * (1 - 5e-7), 5e-7}, 4), Codes{});
  EXPECT_EQ(codes({Status::feasible, 3, 0.25}, 4), Codes{});
  EXPECT_EQ(codes({Status::feasible, -1, std::nullopt}, 4), Codes{});
  EXPECT_EQ(codes({Status::optimal, 0, 0}, 0), Codes{});
}

TEST(Statement, ABoundIsAtMostTheValue) {
  EXPECT_EQ(codes({Status::optimal, 4 * (1 + 1e-10), 0}, 4), Codes{});
  EXPECT_EQ(codes({Status::optimal, 4 * (1 + 1e-8), 0}, 4), Codes{"bound-above-value"});
  EXPECT_EQ(codes({Status::optimal, kInfinity, 0}, 4), Codes{"bound-above-value"});
}

TEST(Statement, AGapIsThatOfValueAndBound) {
  EXPECT_EQ(codes({Status::feasible, 3, 0.25 + 1e-8}, 4), Codes{"gap-wrong"});
  EXPECT_EQ(codes({Status::feasible, std::nullopt, 0.5}, 4), Codes{"gap-wrong"});
  EXPECT_EQ(codes({Status::feasible, std::nullopt, 1}, 4), Codes{});
}

TEST(Statement, AStatusIsThatOfTheGap) {
  EXPECT_EQ(codes({Status::optimal, 3, 0.25}, 4), Codes{"status-wrong"});
  EXPECT_EQ(codes({Status::feasible, 4, 0}, 4), Codes{"status-wrong"});
  EXPECT_EQ(codes({Status::infeasible, 3, 0.25}, 4), Codes{"status-wrong"});
  EXPECT_EQ(codes({Status::unknown, 3, 0.25}, 4), Codes{"status-wrong"});
}

TEST(Statement, WithoutABoundNothingIsOptimalAndAnythingFeasible) {
  EXPECT_EQ(codes({Status::optimal, std::nullopt, std::nullopt}, 4), Codes{"status-wrong"});
  EXPECT_EQ(codes({Status::feasible, std::nullopt, std::nullopt}, 4), Codes{});
  EXPECT_EQ(codes({Status::feasible, std::nullopt, std::nullopt}, 0), Codes{});
}

}  // namespace
}  // namespace placewright
