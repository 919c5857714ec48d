// PEFT: predict earliest finish time. HEFT that looks ahead: a device is good if the op ends early
// there and the rest of the graph can still end early from there.
//
// The optimistic cost of an op on a kind of device is the longest path behind it, where every op is
// on the kind that is best for it and for what follows, and a change of kinds costs the mean
// transfer:
//
//   oct(v, k) = max over tensors t of v and ops c that read t of
//               min over kinds j of oct(c, j) + time(c, j) + (j = k ? 0 : transfer(t))
//
// Ops in order of their mean optimistic cost; each goes to the device with the least end + oct, in
// gaps between earlier ops where it fits. The paper has a row for each device; devices of a kind
// share one here, so the table takes O(edges x kinds^2). Otherwise as HEFT.
//
// Arabnejad, Barbosa: List scheduling algorithm for heterogeneous systems by an optimistic cost
// table. IEEE TPDS 25(3), 2014.

#include <algorithm>
#include <vector>

#include "evaluate/mean_transfer.h"
#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/published/published.h"

namespace placewright {
namespace {

// op x kind
class OptimisticCosts {
 public:
  explicit OptimisticCosts(const Problem& problem)
      : kinds_(problem.kind_count()), costs_(problem.op_count() * kinds_, 0) {
    const Table<TensorId, double> transfer = mean_transfer_times(problem);
    std::vector<DeviceId> representative(kinds_);
    for (const DeviceId device : problem.devices()) {
      representative[problem.kind_of(device).index()] = device;
    }
    const auto order = problem.topological_order();
    std::vector<double> through(kinds_);  // a reader and what is behind it
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      for (const TensorId output : problem.outputs(*op)) {
        for (const OpId consumer : problem.consumers(output)) {
          for (std::size_t k = 0; k < kinds_; ++k) {
            through[k] = representative[k].valid()
                             ? of(consumer)[k] + problem.time(consumer, representative[k])
                             : kInfinity;
          }
          add_path(*op, through, transfer[output]);
        }
      }
    }
  }

  [[nodiscard]] std::span<const double> of(OpId op) const {
    return {costs_.data() + op.index() * kinds_, kinds_};
  }

  [[nodiscard]] double mean(OpId op) const {
    double sum = 0;
    for (const double cost : of(op)) sum += cost;
    return sum / static_cast<double>(kinds_);
  }

 private:
  void add_path(OpId op, const std::vector<double>& through, double transfer) {
    const double elsewhere = *std::min_element(through.begin(), through.end()) + transfer;
    if (elsewhere == kInfinity) return;
    for (std::size_t k = 0; k < kinds_; ++k) {
      double& cost = costs_[op.index() * kinds_ + k];
      cost = std::max(cost, std::min(through[k], elsewhere));
    }
  }

  std::size_t kinds_;
  std::vector<double> costs_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const OptimisticCosts costs(problem);
  Table<OpId, double> rank(problem.op_count());
  for (const OpId op : problem.ops()) rank[op] = costs.mean(op);
  const std::vector<OpId> order = list_order(problem, rank);
  return construct(problem, control, [&](DeviceChoice& choice) {
    return earliest_end_plan(problem, order, choice, control,
                             [&](OpId op) { return costs.of(op); });
  });
}

}  // namespace

PlannerEntry peft() {
  return PlannerEntry{.name = "peft",
                      .summary = "HEFT that looks ahead by an optimistic cost table (PEFT)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .role = Role::published,
                      .knows = kCommonAndSharing,
                      .plan = plan};
}

}  // namespace placewright
