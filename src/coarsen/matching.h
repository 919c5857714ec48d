// Matching: pairs of ops that a coarser problem takes for one, as multilevel partitioners do it.
//
// An op u and an op v that reads from it are worth joining where the transfer takes long and their
// work does not:
//
//   rating(u, v) = transfer(u, v) / (work(u) + work(v))
//
// Pairs are taken greedily, the highest rating first, each op in one pair at most. The graph of the
// pairs stays acyclic. With level(v) the longest path to v, only pairs with level(v) = level(u) + 1
// are joined. Every edge goes up by one level at least, and a cycle of pairs goes down by one level
// at most in each pair, from v to u; so a cycle leads from pair to pair of the same levels, from
// the u of one to the v of the next. Hence no v is taken that reads from the u of another pair of
// its levels.
//
// About half of the ops are left after each round. O((ops + edges) log).
//
// Reference: J. Herrmann et al., "Multilevel Algorithms for Acyclic Partitioning of Directed
// Acyclic Graphs", SIAM Journal on Scientific Computing 41(4), 2019.

#pragma once

#include "coarsen/coarsening.h"
#include "problem/problem.h"

namespace placewright {

// What joining weighs against each other, in the problem's unit of time.
struct MatchingCosts {
  Table<OpId, double> work;
  Table<TensorId, double> transfer;
  double heaviest = kInfinity;  // no pair has more work
};

// Only ops that the placement has on the same device are joined, so that it is one of the coarser
// problem too. A placement that leaves all ops without a device permits every pair.
Partition matched(const Problem& problem, const MatchingCosts& costs, const Placement& placement);

}  // namespace placewright
