// Pipelines: stages with a load, for any number of samples.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "evaluate/activities.h"
#include "evaluate/contiguity.h"
#include "evaluate/cost_model.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"

namespace placewright {
namespace {

// A pipeline's stages, and what each memory space holds of them. A replica holds the whole stage.
class StageMemory {
 public:
  StageMemory(const Problem& problem, std::span<const Stage> stages)
      : problem_(problem), stages_(stages), stage_of_(problem.op_count()) {
    const std::size_t loop = loop_of(problem, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (const OpId op : stages[i].ops) stage_of_[op] = i;
      samples_.push_back(samples_in_flight(problem, {i, stages.size(), loop}));
    }
  }

  [[nodiscard]] MemoryLedger resident() const {
    MemoryLedger ledger(problem_);
    Table<SpaceId, const Stage*> holds(problem_.space_count(), nullptr);
    for (const Stage& stage : stages_) {
      for (const DeviceId device : stage.devices) {
        if (std::exchange(holds[problem_.space(device)], &stage) == &stage) continue;
        for (const OpId op : stage.ops) ledger.add(op, device);
      }
    }
    return ledger;
  }

  // Bytes of the tensors: each that is produced in the space or comes from another, for as many
  // samples as the stage has in flight that produces or reads it there; of several stages the most.
  [[nodiscard]] Table<SpaceId, double> in_flight() const {
    Table<SpaceId, double> bytes(problem_.space_count(), 0);
    Table<SpaceId, double> most(problem_.space_count(), 0);  // samples of the tensor at hand
    for (const TensorId tensor : problem_.tensors()) {
      for_each_place(tensor, [&](SpaceId space, double samples) {
        most[space] = std::max(most[space], samples);
      });
      for_each_place(tensor, [&](SpaceId space, double) {
        bytes[space] += std::exchange(most[space], 0) * problem_.tensor(tensor).bytes;
      });
    }
    return bytes;
  }

 private:
  // Calls `visit(space, samples in flight)` for each device that produces or reads the tensor.
  template <class Visit>
  void for_each_place(TensorId tensor, Visit visit) const {
    const auto visit_stage_of = [&](OpId op) {
      const std::size_t stage = stage_of_[op];
      for (const DeviceId device : stages_[stage].devices) {
        if (!in_host_memory(problem_, device)) visit(problem_.space(device), samples_[stage]);
      }
    };
    visit_stage_of(problem_.producer(tensor));
    for (const OpId reader : problem_.consumers(tensor)) visit_stage_of(reader);
  }

  const Problem& problem_;
  std::span<const Stage> stages_;
  Table<OpId, std::size_t> stage_of_;
  std::vector<double> samples_;  // in flight, by stage
};

std::optional<Plan> possible(Plan plan) {
  if (plan.value == kInfinity) return std::nullopt;
  return plan;
}

class PipelineCosts final : public CostModel {
 public:
  [[nodiscard]] std::optional<Plan> plan_of(const Problem& problem,
                                            const Placement& placement) const override {
    if (!contiguous(problem, placement)) return std::nullopt;
    return possible(pipeline_plan(problem, placement));
  }

  // Every stage keeps its devices and takes the ops that are placed on its first one; ops on a
  // device without a stage make a stage of their own.
  [[nodiscard]] std::optional<Plan> in_the_shape_of(const Plan& shape, const Problem& problem,
                                                    const Placement& placement) const override {
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<Stage> stages;
    Table<DeviceId, std::size_t> stage_led_by(problem.device_count(), kNone);
    Table<DeviceId, char> follows(problem.device_count(), 0);
    for (const Stage& stage : shape.stages) {
      stage_led_by[stage.devices.front()] = stages.size();
      for (std::size_t i = 1; i < stage.devices.size(); ++i) follows[stage.devices[i]] = 1;
      stages.push_back({stage.devices, {}, 0});
    }
    for (const OpId op : problem.topological_order()) {
      const DeviceId device = placement[op];
      if (follows[device]) return std::nullopt;
      if (stage_led_by[device] == kNone) {
        stage_led_by[device] = stages.size();
        stages.push_back({{device}, {}, 0});
      }
      stages[stage_led_by[device]].ops.push_back(op);
    }
    std::erase_if(stages, [](const Stage& stage) { return stage.ops.empty(); });
    return possible(pipeline_plan(problem, std::move(stages)));
  }

  void simulate(const Problem& problem, const Plan& plan, Simulation& simulation) const override {
    const std::vector<Stage> stages =
        plan.stages.empty() ? stages_of(problem, plan.placement) : plan.stages;
    const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, plan.placement);
    const StageMemory memory(problem, stages);
    const MemoryLedger resident = memory.resident();
    const Table<SpaceId, double> in_flight = memory.in_flight();
    simulation.end = plan.value;
    for (const Stage& stage : stages) {
      const DeviceId first = stage.devices.front();
      const auto replicas = static_cast<double>(stage.devices.size());
      const PassLoad load = loads[first].both();
      for (const DeviceId device : stage.devices) {
        DeviceSummary& summary = simulation.devices[device];
        summary.ops = stage.ops.size();
        summary.compute = load.compute / replicas;
        summary.busy = stage.load;
        summary.idle = idle_time(simulation.end, stage.load);
        summary.sending = load.out / replicas;
        summary.receiving = load.in / replicas;
        summary.resident = resident.used(device);
        summary.peak = summary.resident + in_flight[problem.space(device)];
      }
    }
  }

  [[nodiscard]] std::vector<Transfer> movements(const Problem& problem,
                                                const Plan& plan) const override {
    ActivityNetwork network(problem, plan.placement);
    for (std::size_t i = 0; i < network.transfers.size(); ++i) {
      network.transfers[i].start = 0;
      network.transfers[i].end = network.duration[ActivityId{network.op_count + i}];
    }
    return std::move(network.transfers);
  }
};

}  // namespace

const CostModel& pipeline_costs() {
  static const PipelineCosts costs;
  return costs;
}

}  // namespace placewright
