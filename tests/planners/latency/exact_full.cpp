#include <gtest/gtest.h>

#include "support/exact_cases.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

using testing::agrees_with_brute_force;
using testing::exact_draft;
using testing::mixed_spaces_completion_draft;
using testing::mixed_spaces_draft;
using testing::sharing_completion_draft;
using testing::sharing_draft;
using testing::sharing_modules_draft;

TEST(CpsatSchedule, AgreesWithBruteForceAtLength) {
  agrees_with_brute_force("cpsat", exact_draft, testing::random_cases());
}

TEST(CpsatSchedule, AgreesWithBruteForceAtLengthWithSharedResources) {
  agrees_with_brute_force("cpsat", sharing_draft, testing::random_cases());
}

TEST(CpsatSchedule, AgreesWithBruteForceAtLengthWithMixedSpaces) {
  agrees_with_brute_force("cpsat", mixed_spaces_draft, testing::random_cases());
}

TEST(Decompose, AgreesWithBruteForceAtLengthWithSharedResources) {
  agrees_with_brute_force("decompose", sharing_modules_draft, testing::random_cases());
}

TEST(ToctExact, AgreesWithBruteForceAtLengthWithSharedResources) {
  agrees_with_brute_force("toct-exact", sharing_completion_draft, testing::random_cases());
}

TEST(ToctExact, AgreesWithBruteForceAtLengthWithMixedSpaces) {
  agrees_with_brute_force("toct-exact", mixed_spaces_completion_draft, testing::random_cases());
}

TEST(Moirai, AgreesWithBruteForceAtLength) {
  agrees_with_brute_force("moirai", exact_draft, testing::random_cases());
}

}  // namespace
}  // namespace placewright
