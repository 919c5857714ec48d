// Work of sets of models: a bound on total completion that knows that early models delay late ones.
//
// Let S be the models that are complete when model j is. All their work is done by then, so
//
//   completion(j) >= max over sets R in S of W(R), and >= the critical path of every model in S
//   W(R) = first arrival in R + sum over ops v of R of min over kinds k of y(p) work(v, k)
//          / sum over pools p of y(p) capacity(p)          for any prices y >= 0 (bounds/work.h)
//
// where p is the pool of kind k (bounds/pools.h): the devices of the kind, and work is time; and
// once more, where devices share resources, the resources of all kinds that share them, and work is
// energy. The best order in which the models can be complete gives the bound,
//
//   f(S) = min over j in S of f(S without j) + weight(j) (max over R of W(R), paths of S - arrival(j)),
//
// exact over the subsets up to 14 models: for one pool that is the best schedule of one machine
// that may interrupt a model for another.
//
// With more models each price by itself makes of all devices such a machine, which has bounds of
// its own. Let it always run the model of those there with the most weight for its work. No
// schedule has a smaller sum of weight x mean busy time, and a completion is half the work, or
// more, after the mean busy time (Goemans, Queyranne, Schulz, Skutella, Wang: Single machine
// scheduling with release dates, SIAM J. Discrete Math. 15, 2002). Where all weights are equal,
// running what has least left is the optimum itself. Models that wait for their own path rather
// than for others may be left out of the machine and counted with their paths.
//
// Prices are found by searches along coordinates for the whole, for each model and, of few models,
// each pair. Transfers, ports and memory are left out. O(prices x (ops x kinds + 2^models) +
// 2^models x models).

#pragma once

#include <vector>

#include "bounds/pools.h"
#include "problem/problem.h"

namespace placewright {

// Prices of a pool's capacity, by kind, and what they make of each model's work.
struct PricedWork {
  Table<KindId, double> price;
  Table<OpId, double> op;        // the least price of the op
  Table<ModelId, double> model;  // the sum of its ops
  double capacity = 0;           // of all pools
};

// Sets of prices that matter, the same for the same problem.
std::vector<PricedWork> priced_works(const Problem& problem, Capacity limit);

// `paths`: when each model can be complete at the earliest, were it alone.
double completion_order_bound(const Problem& problem, const Table<ModelId, double>& paths);

}  // namespace placewright
