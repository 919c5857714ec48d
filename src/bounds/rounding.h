// What rounding may do to a bound.
//
// A bound is proved for real numbers and computed with doubles. Before it is handed out it is made
// smaller by more than the computation can be off, so that it holds for the values of plans, which
// are computed in another order.

#pragma once

namespace placewright {

// Relative. Of a sum over a graph, or a quotient of two.
inline constexpr double kSumRounding = 1e-12;
// Of a search or a bisection that compares such sums with each other.
inline constexpr double kSearchRounding = 1e-9;
// Of a program that HiGHS solved. It keeps rows within 1e-6; its bound is believed up to half of
// what counts as optimal.
inline constexpr double kProgramRounding = 5e-7;

// No rounding makes a sum that is less than this as large as the bound.
constexpr double safe_sum(double bound) {
  return bound * (1 - kSumRounding);
}
// No rounding makes a sum that is more than this as small as the limit.
constexpr double loose_sum(double limit) {
  return limit * (1 + kSumRounding);
}
constexpr double safe_search(double bound) {
  return bound * (1 - kSearchRounding);
}
constexpr double safe_program(double bound) {
  return bound * (1 - kProgramRounding);
}

}  // namespace placewright
