// What rounding may do to a bound.
//
// A bound is proved for real numbers and computed with doubles. Before it is handed out it is made
// smaller by more than the computation can be off, so that it holds for the values of plans, which
// are computed in another order.

#pragma once

namespace placewright {

// For a sum over a graph, or a quotient of two.
constexpr double safe_sum(double bound) {
  return bound * (1 - 1e-12);
}

// For a search or a bisection that compares such sums with each other.
constexpr double safe_search(double bound) {
  return bound * (1 - 1e-9);
}

}  // namespace placewright
