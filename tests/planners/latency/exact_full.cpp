#include <gtest/gtest.h>

#include "support/exact_cases.h"

namespace placewright {
namespace {

using testing::agrees_with_brute_force;

TEST(CpsatSchedule, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("cpsat", 2000, 6000);
}

TEST(Moirai, AgreesWithBruteForceOnThousands) {
  agrees_with_brute_force("moirai", 6000, 8000);
}

}  // namespace
}  // namespace placewright
