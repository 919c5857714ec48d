// The exact planners for schedules against brute force, on a few hundred small problems
// (exact_full.cpp: thousands).

#include <gtest/gtest.h>

#include "support/exact_cases.h"

namespace placewright {
namespace {

using testing::agrees_with_brute_force;
using testing::exact_draft;
using testing::mixed_spaces_completion_draft;
using testing::mixed_spaces_draft;
using testing::sharing_completion_draft;
using testing::sharing_draft;
using testing::sharing_modules_draft;

TEST(CpsatSchedule, AgreesWithBruteForce) {
  agrees_with_brute_force("cpsat", exact_draft, {0, 300});
}

TEST(CpsatSchedule, AgreesWithBruteForceOnSharedResources) {
  agrees_with_brute_force("cpsat", sharing_draft, {0, 100});
}

TEST(CpsatSchedule, AgreesWithBruteForceOnMixedSpaces) {
  agrees_with_brute_force("cpsat", mixed_spaces_draft, {0, 150});
}

TEST(Decompose, AgreesWithBruteForceOnSharedResources) {
  agrees_with_brute_force("decompose", sharing_modules_draft, {0, 150});
}

TEST(ToctExact, AgreesWithBruteForceOnSharedResources) {
  agrees_with_brute_force("toct-exact", sharing_completion_draft, {1000, 1030});
}

TEST(ToctExact, AgreesWithBruteForceOnMixedSpaces) {
  agrees_with_brute_force("toct-exact", mixed_spaces_completion_draft, {1000, 1030});
}

TEST(Moirai, AgreesWithBruteForce) {
  agrees_with_brute_force("moirai", exact_draft, {1000, 1150});
}

// A binary variable that was 1e-6 off loosened a row by 1e-6 of the value, and nothing was proved.
TEST(Moirai, ProvesWhereRowsAreLong) {
  agrees_with_brute_force("moirai", exact_draft, {70000000972, 70000000978});
}

}  // namespace
}  // namespace placewright
