// The schedule of a problem as a mixed-integer program (Moirai's, for HiGHS).
//
//   x[v,d]    op v runs on device d                         y[u,a,b]  tensor u goes from a to b
//   S[v]      start of op v                                 T[u]      start of a transfer
//   o[i,j]    activity i comes before j: one for each pair of ops, or of transfers, that no path
//             orders and that may meet on a device or port
//
//   minimise    makespan
//   subject to  sum over d of x[v,d]   = 1                                       every op v
//               sum over b of y[u,a,b] = x[producer,a]                           every tensor u and
//               sum over a of y[u,a,b] = x[reader,b]                             device a, b
//               T[u]      >= S[producer] + sum over d of p[producer,d] x[producer,d]
//               S[reader] >= T[u] + sum over a, b of t[u,a,b] y[u,a,b]
//               S[j] >= end(i) - L (3 - o[i,j] - x[i,d] - x[j,d])                every pair of ops
//               S[i] >= end(j) - L (2 + o[i,j] - x[i,d] - x[j,d])                and device d
//               the same for pairs of transfers on out-ports and in-ports
//               sum over v of bytes(v) x[v,d] <= memory(d)                       every device d
//
// A tensor with several readers has one transfer for each device; the host interconnect has `out`
// and `in`. L is as small as the time windows of i and j allow: an op cannot start before the
// shortest path to it, nor end later than what keeps within the known plan. Pairs whose windows
// order them need no variable.
//
// Cost: up to (ops^2 + transfers^2) / 2 order variables and twice as many rows for each device.
// Does not know: lanes, cut overheads, peak memory.
//
// Zhang et al.: Moirai: Towards optimal placement for distributed inference on heterogeneous
// devices. arXiv 2312.04025.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"
#include "solvers/linear_program.h"

namespace placewright {

class MoiraiModel {
 public:
  // Plans worse than `start` are left out; without one, everything is in.
  MoiraiModel(const Problem& problem, const Plan* start);
  ~MoiraiModel();

  [[nodiscard]] std::size_t order_variables() const;

  // Builds the rows that order activities; before that the model is small.
  void add_orders();

  solvers::LinearResult solve(const solvers::LinearLimits& limits,
                              const solvers::LinearProgressCallback& progress);

  // The plan of a point, re-timed.
  [[nodiscard]] Plan plan(std::span<const double> values) const;
  // What the solver's objective means.
  [[nodiscard]] double value(double objective) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace placewright
