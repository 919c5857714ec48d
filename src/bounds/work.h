// Work bound: all work must be done by the devices there are.
//
//   minimise T  subject to  sum over kinds k of x[g, k] = 1 for each colocation group g,
//                           sum over g of work(g, k) x[g, k] <= capacity(k) T for each kind k,
//                           sum over g of bytes(g) x[g, k] <= memory(k)       for each kind k
//
// with x fractional and the devices of a kind taken together. Any prices y >= 0 (time), z >= 0
// (memory) with sum of capacity(k) y(k) = 1 prove
//
//   T >= sum over g of min over k of (y(k) work(g, k) + z(k) bytes(g))
//        - sum over k of z(k) memory(k)
//
// (with the devices of a kind as their capacity, or, where kinds share resources, with the pool of
// these resources as the common capacity of the kinds, and time x share x amount as the work: the
// energy that an op takes whatever device it runs on). The bound is computed from prices, never
// read off a solver: rounding in HiGHS cannot make it wrong. Prices come from the LP where it is
// small and from a subgradient search where it is not. O(groups x kinds) per evaluation.

#pragma once

#include <functional>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// Which ops count as work.
enum class WorkScope { all, forward, backward };

// Asked to stop, what the prices of the search prove by then.
double work_bound(
    const Problem& problem, WorkScope scope = WorkScope::all,
    const std::function<bool()>& stop = [] { return false; });

// Prices y as above, of time on the devices of each kind, by the subgradient search (an LP would
// take longer than those who ask). A planner that weighs the time of an op by them sees what a unit
// of that kind's time is worth to all the others.
Table<KindId, double> work_prices(const Problem& problem);

}  // namespace placewright
