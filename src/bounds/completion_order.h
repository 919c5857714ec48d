// Work of sets of models: a bound on total completion that knows that early models delay late ones.
//
// Let S be the models that are complete when model j is. All their work is done by then, so
//
//   completion(j) >= max(W(S), critical path of every model in S)
//   W(S) = first arrival in S + sum over ops v of S of min over devices d of y(d) time(v, d)
//          / sum over devices of y(d) lanes(d)          for any prices y >= 0 (bounds/work.h)
//
// and the best order in which the models can be complete gives the bound,
//
//   f(S) = min over j in S of f(S without j) + weight(j) (max(W(S), paths of S) - arrival(j)),
//
// exact over the subsets up to 14 models. With more models, for each price by itself: the devices
// are then one machine, for which Smith's order is optimal. Prices are found by searches along
// coordinates for the whole, for each model and, of few models, each pair. Transfers, ports and
// memory are left out. O(prices x (ops x kinds + 2^models) + 2^models x models).

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

// Prices of device time, by kind, and what they make of each model's work.
struct PricedWork {
  Table<KindId, double> price;
  Table<OpId, double> op;        // the least price of the op
  Table<ModelId, double> model;  // the sum of its ops
  double capacity = 0;           // of all lanes
};

// Sets of prices that matter, the same for the same problem.
std::vector<PricedWork> priced_works(const Problem& problem);

double completion_order_bound(const Problem& problem);

}  // namespace placewright
