// Calls: devices run sets of ops, and all tensors between them go through host memory.

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/calls.h"
#include "evaluate/cost_model.h"

namespace placewright {
namespace {

bool within_call_limit(const Problem& problem, const std::vector<Call>& calls) {
  Table<DeviceId, int> count(problem.device_count(), 0);
  return std::all_of(calls.begin(), calls.end(), [&](const Call& call) {
    return ++count[call.device] <= problem.rules().calls_per_device;
  });
}

class CallCosts final : public CostModel {
 public:
  [[nodiscard]] std::optional<Plan> plan_of(const Problem& problem,
                                            const Placement& placement) const override {
    std::vector<Call> calls = split_into_calls(problem, placement);
    if (!within_call_limit(problem, calls)) return std::nullopt;
    return call_plan(problem, placement, std::move(calls));
  }

  [[nodiscard]] std::optional<Plan> in_the_shape_of(const Plan& shape, const Problem& problem,
                                                    const Placement& placement) const override {
    if (shape.placement != placement) return std::nullopt;
    return call_plan(problem, placement, shape.calls);
  }

  void simulate(const Problem& problem, const Plan& plan, Simulation& simulation) const override {
    for (const Call& call : plan.calls) {
      simulation.devices[call.device].busy += call.end - call.start;
      simulation.end = std::max(simulation.end, call.end);
    }
    simulation.end = std::max(simulation.end, plan.value);
    for (const OpId op : problem.ops()) {
      DeviceSummary& device = simulation.devices[plan.placement[op]];
      const double time = problem.time(op, plan.placement[op]);
      device.compute += time;
      if (problem.on_host(plan.placement[op])) device.busy += time;
    }
    for (const Transfer& transfer : movements(problem, plan)) simulation.add(transfer);
    for (DeviceSummary& summary : simulation.devices) {
      summary.idle = idle_time(simulation.end, summary.busy);
    }
  }

  // A tensor goes into a call that reads it from outside, and out of a call that others read from.
  [[nodiscard]] std::vector<Transfer> movements(const Problem& problem,
                                                const Plan& plan) const override {
    constexpr std::size_t kHost = static_cast<std::size_t>(-1);
    Table<OpId, std::size_t> call_of(problem.op_count(), kHost);
    for (std::size_t call = 0; call < plan.calls.size(); ++call) {
      for (const OpId op : plan.calls[call].ops) call_of[op] = call;
    }
    std::vector<Transfer> movements;
    std::vector<std::size_t> readers;
    for (const TensorId tensor : problem.tensors()) {
      const std::size_t made_in = call_of[problem.producer(tensor)];
      readers.clear();
      for (const OpId reader : problem.consumers(tensor)) {
        if (call_of[reader] != made_in) readers.push_back(call_of[reader]);
      }
      if (readers.empty()) continue;
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      const double length = problem.host_time(tensor);
      if (made_in != kHost) {
        movements.push_back({tensor, Leg::out, plan.calls[made_in].device, {}, 0, length});
      }
      for (const std::size_t call : readers) {
        if (call == kHost) continue;
        movements.push_back({tensor, Leg::in, {}, plan.calls[call].device, 0, length});
      }
    }
    return movements;
  }

  [[nodiscard]] Table<TensorId, double> overheads(const Problem& problem,
                                                  const Plan& plan) const override {
    Table<TensorId, double> time(problem.tensor_count(), 0);
    for (const auto& [tensor, leg, from, to, start, end] : movements(problem, plan)) {
      time[tensor] += leg == Leg::out ? problem.send_overhead(tensor, from)
                                      : problem.receive_overhead(tensor, to);
    }
    return time;
  }
};

}  // namespace

const CostModel& call_costs() {
  static const CallCosts costs;
  return costs;
}

}  // namespace placewright
