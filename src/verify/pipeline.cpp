#include "verify/pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "verify/contiguity.h"
#include "verify/movements.h"
#include "verify/placement.h"

namespace placewright::verifying {
namespace {

// Stages

bool check_stage_devices(const Problem& problem, const Plan& plan, Findings& findings) {
  const std::size_t before = findings.count();
  Table<DeviceId, char> used(problem.device_count(), 0);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    if (stage.devices.empty() || stage.ops.empty()) {
      findings.add(ViolationCode::stages_inconsistent, stage.ops, stage.devices,
                   "stage {} has no {}", i, stage.devices.empty() ? "device" : "op");
    }
    for (const DeviceId device : stage.devices) {
      if (device.index() >= problem.device_count()) {
        findings.add(ViolationCode::stages_inconsistent, stage.ops, {},
                     "stage {} runs on a device that does not exist", i);
      } else if (std::exchange(used[device], char{1}) != 0) {
        findings.add(ViolationCode::stages_inconsistent, stage.ops, {device},
                     "stage {} runs on {}, which another stage or replica uses", i,
                     called(problem, device));
      }
    }
  }
  return findings.count() == before;
}

bool check_stage_ops(const Problem& problem, const Plan& plan, Findings& findings) {
  const std::size_t before = findings.count();
  Table<OpId, char> staged(problem.op_count(), 0);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const DeviceId first = plan.stages[i].devices.front();
    for (const OpId op : plan.stages[i].ops) {
      if (op.index() >= problem.op_count()) {
        findings.add(ViolationCode::stages_inconsistent, {}, {first},
                     "stage {} holds an op that does not exist", i);
      } else if (std::exchange(staged[op], char{1}) != 0) {
        findings.add(ViolationCode::stages_inconsistent, {op}, {first}, "{} is twice in the stages",
                     called(problem, op));
      } else if (plan.placement[op] != first) {
        findings.add(ViolationCode::stages_inconsistent, {op}, {plan.placement[op], first},
                     "{} is placed on {} and in stage {}, whose first device is {}",
                     called(problem, op), called(problem, plan.placement[op]), i,
                     called(problem, first));
      }
    }
  }
  for (const OpId op : problem.ops()) {
    if (staged[op] != 0) continue;
    findings.add(ViolationCode::stages_inconsistent, {op}, {}, "{} is in no stage",
                 called(problem, op));
  }
  return findings.count() == before;
}

bool check_stage_records(const Problem& problem, const Plan& plan, Findings& findings) {
  if (plan.stages.empty()) return true;
  return check_stage_devices(problem, plan, findings) && check_stage_ops(problem, plan, findings);
}

void check_replicas(const Problem& problem, const Stage& stage, Findings& findings) {
  const auto most = static_cast<std::size_t>(problem.rules().max_replicas);
  const DeviceId first = stage.devices.front();
  if (stage.devices.size() > most) {
    findings.add(ViolationCode::replicas_not_allowed, stage.ops, stage.devices,
                 "the stage on {} runs on {} devices, at most {} may share a stage",
                 called(problem, first), stage.devices.size(), most);
  }
  for (const DeviceId replica : stage.devices) {
    if (problem.kind_of(replica) != problem.kind_of(first)) {
      findings.add(ViolationCode::replicas_not_allowed, stage.ops, {first, replica},
                   "{} and {} share a stage and are of different kinds", called(problem, first),
                   called(problem, replica));
    }
    for (const OpId op : stage.ops) {
      const DeviceId pin = problem.op(op).pinned_to;
      if (replica == first || !pin.valid() || pin == replica) continue;
      findings.add(ViolationCode::pin_broken, {op}, {pin, replica},
                   "{} is pinned to {} and its stage also runs on {}", called(problem, op),
                   called(problem, pin), called(problem, replica));
    }
  }
}

// The plan's stages, or one for each device with ops: in the order in which they feed each other,
// of several candidates the smallest device number first; in the order of devices where there is
// none.
std::vector<Stage> stages_of(const Problem& problem, const Plan& plan) {
  if (!plan.stages.empty()) return plan.stages;
  auto ops = ops_by_device(problem, plan.placement);
  std::vector<Stage> stages;
  for (const DeviceId device : problem.devices()) {
    if (!ops[device].empty()) stages.push_back({{device}, std::move(ops[device]), 0});
  }
  const std::vector<std::size_t> order = feeding_order(problem, stages);
  if (order.empty()) return stages;
  std::vector<Stage> ordered;
  for (const std::size_t i : order) ordered.push_back(std::move(stages[i]));
  return ordered;
}

// Loads

struct PassWork {
  double compute = 0;
  double in = 0;
  double out = 0;

  friend PassWork operator+(const PassWork& left, const PassWork& right) {
    return {left.compute + right.compute, left.in + right.in, left.out + right.out};
  }
};

struct Work {
  PassWork forward;
  PassWork backward;

  PassWork& pass(bool is_backward) { return is_backward ? backward : forward; }
};

// A transfer in belongs to the producer's pass if a consumer there is of that pass, else to the
// consumers'.
bool received_in_backward_pass(const Problem& problem, const Placement& placement,
                               const Movement& movement) {
  const bool producer_backward = problem.op(problem.producer(movement.tensor)).backward;
  for (const OpId consumer : problem.consumers(movement.tensor)) {
    if (placement[consumer] == movement.to && problem.op(consumer).backward == producer_backward) {
      return producer_backward;
    }
  }
  return !producer_backward;
}

// By the first device of each stage, on which its ops are placed.
Table<DeviceId, Work> work_by_device(const Problem& problem, const Placement& placement) {
  Table<DeviceId, Work> work(problem.device_count());
  for (const OpId op : problem.ops()) {
    const DeviceId device = placement[op];
    work[device].pass(problem.op(op).backward).compute += problem.time(op, device);
  }
  const auto movements = needed_movements(problem, placement);
  for (const TensorId tensor : problem.tensors()) {
    for (const Movement& movement : movements[tensor]) {
      if (movement.from.valid()) {
        PassWork& sender = work[movement.from].pass(problem.op(problem.producer(tensor)).backward);
        sender.out += movement.duration;
        sender.compute += problem.device(movement.from).send_overhead;
      }
      if (movement.to.valid()) {
        PassWork& receiver =
            work[movement.to].pass(received_in_backward_pass(problem, placement, movement));
        receiver.in += movement.duration;
        receiver.compute += problem.device(movement.to).receive_overhead;
      }
    }
  }
  return work;
}

double busy_time(TransferMode mode, const PassWork& work) {
  switch (mode) {
    case TransferMode::sequential:
      return work.compute + work.in + work.out;
    case TransferMode::overlapped:
      return std::max(work.compute, work.in + work.out);
    case TransferMode::duplex:
      return std::max({work.compute, work.in, work.out});
  }
  return kInfinity;
}

// Interleaved passes: `load` only. Phased: both parts, and `load` is their sum.
struct StageLoad {
  double forward = 0;
  double backward = 0;
  double load = 0;
};

double gradient_exchange(const Problem& problem, const Stage& stage) {
  const auto replicas = static_cast<double>(stage.devices.size());
  const double bandwidth = problem.rules().replica_bandwidth;
  if (!problem.has_backward_ops() || bandwidth == 0) return 0;
  return (replicas - 1) / replicas * resident_bytes(problem, stage.ops) / bandwidth;
}

std::vector<StageLoad> stage_loads(const Problem& problem, const Placement& placement,
                                   const std::vector<Stage>& stages) {
  const TransferMode mode = problem.rules().transfers;
  const Table<DeviceId, Work> work = work_by_device(problem, placement);
  std::vector<StageLoad> loads;
  for (const Stage& stage : stages) {
    const auto replicas = static_cast<double>(stage.devices.size());
    const Work& mine = work[stage.devices.front()];
    const double exchange = gradient_exchange(problem, stage);
    StageLoad load;
    if (problem.rules().training == TrainingMode::interleaved) {
      load.load = busy_time(mode, mine.forward + mine.backward) / replicas + exchange;
    } else {
      load.forward = busy_time(mode, mine.forward) / replicas;
      load.backward = busy_time(mode, mine.backward) / replicas + exchange;
      load.load = load.forward + load.backward;
    }
    loads.push_back(load);
  }
  return loads;
}

double value_of(const Problem& problem, const std::vector<StageLoad>& loads) {
  StageLoad most;
  for (const StageLoad& load : loads) {
    most.forward = std::max(most.forward, load.forward);
    most.backward = std::max(most.backward, load.backward);
    most.load = std::max(most.load, load.load);
  }
  return problem.rules().training == TrainingMode::interleaved ? most.load
                                                               : most.forward + most.backward;
}

void check_loads(const Problem& problem, const Plan& plan, const std::vector<StageLoad>& loads,
                 Findings& findings) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    if (same_value(stage.load, loads[i].load)) continue;
    findings.add(ViolationCode::stage_load_wrong, stage.ops, stage.devices,
                 "the plan states the load {:.9g} for stage {} on {}, it is {:.9g}", stage.load, i,
                 called(problem, stage.devices.front()), loads[i].load);
  }
}

// Memory

// Bytes of the tensors that each stage produces or receives, by its first device, for one sample.
// What host devices touch is in host memory, which is not counted.
Table<DeviceId, double> touched_bytes(const Problem& problem, const Placement& placement) {
  Table<DeviceId, double> bytes(problem.device_count(), 0);
  const auto movements = needed_movements(problem, placement);
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId home = placement[problem.producer(tensor)];
    if (!shares_host_memory(problem, home)) bytes[home] += problem.tensor(tensor).bytes;
    for (const Movement& movement : movements[tensor]) {
      if (movement.to.valid()) bytes[movement.to] += problem.tensor(tensor).bytes;
    }
  }
  return bytes;
}

void check_peak_memory(const Problem& problem, const Placement& placement,
                       const std::vector<Stage>& stages, Findings& findings) {
  const Table<DeviceId, double> touched = touched_bytes(problem, placement);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double samples =
        problem.has_backward_ops() ? static_cast<double>(stages.size() - i) : 1.0;
    const double resident = resident_bytes(problem, stages[i].ops);
    const double tensors = touched[stages[i].devices.front()] * samples;
    for (const DeviceId device : stages[i].devices) {
      const double memory = problem.device(device).memory;
      if (!fits(resident, memory) || fits(resident + tensors, memory)) continue;
      findings.add(ViolationCode::peak_memory_exceeded, stages[i].ops, {device},
                   "{} holds {:.9g} bytes of weights and {:.9g} of tensors for {} samples in "
                   "flight, it has {:.9g}",
                   called(problem, device), resident, tensors, samples, memory);
    }
  }
}

}  // namespace

void check_pipeline(const Problem& problem, const Plan& plan, Findings& findings) {
  if (!check_stage_records(problem, plan, findings)) return;
  const std::vector<Stage> stages = stages_of(problem, plan);
  for (const Stage& stage : stages) {
    check_replicas(problem, stage, findings);
    for (const DeviceId device : stage.devices) {
      check_resident_memory(problem, {device, stage.ops}, findings);
    }
  }
  if (problem.rules().memory == MemoryModel::peak) {
    check_peak_memory(problem, plan.placement, stages, findings);
  }
  if (problem.rules().contiguity == Contiguity::joint) {
    check_joint_contiguity(problem, stages, !plan.stages.empty(), findings);
  }
  if (problem.rules().contiguity == Contiguity::per_device) {
    check_own_contiguity(problem, stages, findings);
  }
  const std::vector<StageLoad> loads = stage_loads(problem, plan.placement, stages);
  check_loads(problem, plan, loads, findings);
  check_value(plan.value, value_of(problem, loads), findings);
}

double pipeline_value(const Problem& problem, const Plan& plan) {
  Findings ignored;
  if (!check_stage_records(problem, plan, ignored)) return kInfinity;
  return value_of(problem, stage_loads(problem, plan.placement, stages_of(problem, plan)));
}

std::vector<double> loads_of_stages(const Problem& problem, const Plan& plan) {
  Findings ignored;
  if (!check_stage_records(problem, plan, ignored)) return {};
  std::vector<double> loads;
  for (const StageLoad& load : stage_loads(problem, plan.placement, plan.stages)) {
    loads.push_back(load.load);
  }
  return loads;
}

}  // namespace placewright::verifying
