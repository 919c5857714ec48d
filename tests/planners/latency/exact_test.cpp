// The exact planners for schedules against brute force, on a few hundred small problems
// (exact_full.cpp: thousands).

#include <gtest/gtest.h>

#include "support/exact_cases.h"

namespace placewright {
namespace {

using testing::agrees_with_brute_force;

TEST(CpsatSchedule, AgreesWithBruteForce) {
  agrees_with_brute_force("cpsat", 0, 300);
}

TEST(Moirai, AgreesWithBruteForce) {
  agrees_with_brute_force("moirai", 1000, 1150);
}

}  // namespace
}  // namespace placewright
