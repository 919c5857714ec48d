// Minimum cut between two nodes, by LEMON's preflow-push.
//
//   minimise  sum of capacity(a) over the arcs a that lead from S to its complement,
//             over the sets S of nodes with the source and without the target
//
// Capacities are rounded down to multiples of a power of two chosen from their sum, so the value is
// never more than that of the least cut, and less by 2^-40 of that sum at most. An infinite
// capacity: the arc is in no cut. O(nodes^2 sqrt(arcs)).

#pragma once

#include <vector>

namespace placewright::solvers {

struct CutArc {
  int source = 0;
  int target = 0;
  double capacity = 0;
};

// Infinite: every cut has an arc of infinite capacity.
double minimum_cut(int nodes, int source, int target, const std::vector<CutArc>& arcs);

}  // namespace placewright::solvers
