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

TEST(CpsatSchedule, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("cpsat", exact_draft, 2000, 6000);
}

TEST(CpsatSchedule, AgreesWithBruteForceOnThousandsWithSharedResources) {
  agrees_with_brute_force("cpsat", sharing_draft, 10000, 14000);
}

TEST(CpsatSchedule, AgreesWithBruteForceOnThousandsWithMixedSpaces) {
  agrees_with_brute_force("cpsat", mixed_spaces_draft, 40000, 44000);
}

TEST(Decompose, AgreesWithBruteForceOnThousandsWithSharedResources) {
  agrees_with_brute_force("decompose", sharing_modules_draft, 30000, 36000);
}

TEST(ToctExact, AgreesWithBruteForceOnThousandsWithSharedResources) {
  agrees_with_brute_force("toct-exact", sharing_completion_draft, 20000, 22000);
}

TEST(ToctExact, AgreesWithBruteForceOnThousandsWithMixedSpaces) {
  agrees_with_brute_force("toct-exact", mixed_spaces_completion_draft, 50000, 51000);
}

TEST(Moirai, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("moirai", exact_draft, 6000, 8000);
}

}  // namespace
}  // namespace placewright
