#include <gtest/gtest.h>

#include "support/exact_cases.h"

namespace placewright {
namespace {

using testing::agrees_with_brute_force;
using testing::exact_draft;
using testing::sharing_completion_draft;
using testing::sharing_draft;

TEST(CpsatSchedule, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("cpsat", exact_draft, 2000, 6000);
}

TEST(CpsatSchedule, AgreesWithBruteForceOnThousandsWithSharedResources) {
  agrees_with_brute_force("cpsat", sharing_draft, 10000, 14000);
}

TEST(ToctExact, AgreesWithBruteForceOnThousandsWithSharedResources) {
  agrees_with_brute_force("toct-exact", sharing_completion_draft, 20000, 22000);
}

TEST(Moirai, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("moirai", exact_draft, 6000, 8000);
}

}  // namespace
}  // namespace placewright
