#include "verify/pipeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "verify/contiguity.h"
#include "verify/movements.h"
#include "verify/placement.h"
#include "verify/resources.h"

namespace placewright::verifying {
namespace {

// Stages

bool check_stage_devices(const Problem& problem, const Plan& plan, Findings& findings) {
  const std::size_t before = findings.count();
  Table<DeviceId, char> used(problem.device_count(), 0);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    if (stage.devices.empty() || stage.ops.empty()) {
      findings.add(ViolationCode::stages_inconsistent, stage.ops, stage.devices, "{} has no {}",
                   stage_name(i), stage.devices.empty() ? "device" : "op");
    }
    for (const DeviceId device : stage.devices) {
      if (device.index() >= problem.device_count()) {
        findings.add(ViolationCode::stages_inconsistent, stage.ops, {},
                     "{} runs on a device that does not exist", stage_name(i));
      } else if (std::exchange(used[device], char{1}) != 0) {
        findings.add(ViolationCode::stages_inconsistent, stage.ops, {device},
                     "{} runs on {}, which another stage or replica uses", stage_name(i),
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
                     "{} holds an op that does not exist", stage_name(i));
      } else if (std::exchange(staged[op], char{1}) != 0) {
        findings.add(ViolationCode::stages_inconsistent, {op}, {first}, "{} is twice in the stages",
                     called(problem, op));
      } else if (plan.placement[op] != first) {
        findings.add(ViolationCode::stages_inconsistent, {op}, {plan.placement[op], first},
                     "{} is placed on {} and in {}, whose first device is {}", called(problem, op),
                     called(problem, plan.placement[op]), stage_name(i), called(problem, first));
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

// What is received belongs to the producer's pass if a consumer there is of that pass, else to the
// consumers'.
template <class IsThere>
bool received_in_backward_pass(const Problem& problem, TensorId tensor, IsThere is_there) {
  const bool producer_backward = problem.op(problem.producer(tensor)).backward;
  for (const OpId consumer : problem.consumers(tensor)) {
    if (problem.op(consumer).backward == producer_backward && is_there(consumer)) {
      return producer_backward;
    }
  }
  return !producer_backward;
}

void add_transfers(const Problem& problem, const Placement& placement, const Traffic& traffic,
                   Table<DeviceId, Work>& work) {
  for (const TensorId tensor : problem.tensors()) {
    const bool sent_backward = problem.op(problem.producer(tensor)).backward;
    for (const Movement& movement : traffic.movements[tensor]) {
      if (movement.from.valid()) work[movement.from].pass(sent_backward).out += movement.duration;
      if (!movement.to.valid()) continue;
      const bool received_backward = received_in_backward_pass(
          problem, tensor, [&](OpId op) { return problem.same_space(placement[op], movement.to); });
      work[movement.to].pass(received_backward).in += movement.duration;
    }
  }
}

void add_overheads(const Problem& problem, const Placement& placement, const Traffic& traffic,
                   Table<DeviceId, Work>& work) {
  if (!problem.has_overheads()) return;
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    work[placement[producer]].pass(problem.op(producer).backward).compute +=
        send_overheads(problem, placement, traffic, tensor);
    for (const OpId receiver : traffic.receivers[tensor]) {
      const DeviceId device = placement[receiver];
      const bool received_backward = received_in_backward_pass(
          problem, tensor, [&](OpId op) { return placement[op] == device; });
      work[device].pass(received_backward).compute += problem.receive_overhead(tensor, device);
    }
  }
}

// By the first device of each stage, on which its ops are placed.
Table<DeviceId, Work> work_by_device(const Problem& problem, const Placement& placement) {
  Table<DeviceId, Work> work(problem.device_count());
  for (const OpId op : problem.ops()) {
    const DeviceId device = placement[op];
    work[device].pass(problem.op(op).backward).compute += problem.time(op, device);
  }
  const Traffic traffic = traffic_of(problem, placement);
  add_transfers(problem, placement, traffic, work);
  add_overheads(problem, placement, traffic, work);
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

// The spaces of its devices, each once.
std::vector<SpaceId> spaces_of(const Problem& problem, const Stage& stage) {
  std::vector<SpaceId> spaces;
  for (const DeviceId device : stage.devices) spaces.push_back(problem.space(device));
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  return spaces;
}

double gradient_exchange(const Problem& problem, const Stage& stage) {
  const auto copies = static_cast<double>(spaces_of(problem, stage).size());
  const double bandwidth = problem.rules().replica_bandwidth;
  if (!problem.has_backward_ops() || bandwidth == 0) return 0;
  return (copies - 1) / copies * resident_bytes(problem, stage.ops) / bandwidth;
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
                 "the plan states the load {:.9g} for {} on {}, it is {:.9g}", stage.load,
                 stage_name(i), called(problem, stage.devices.front()), loads[i].load);
  }
}

// Shared resources

// One pass over the pipeline, or both passes as one: how long each stage runs and when it starts.
struct Pass {
  std::string_view name;  // empty: both passes as one
  std::vector<double> loads;
  std::vector<double> offsets;

  [[nodiscard]] double end() const {
    double latest = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      latest = std::max(latest, offsets[i] + loads[i]);
    }
    return latest;
  }
};

// Offsets that the plan does not state are those of a list: as early as the stages before allow.
Pass pass_of(const Problem& problem, const std::vector<Stage>& stages, std::string_view name,
             std::vector<double> loads, std::optional<double> Stage::*offset) {
  Pass pass{name, std::move(loads), {}};
  const double all = std::accumulate(pass.loads.begin(), pass.loads.end(), 0.0);
  ResourceBook book(problem, kTimeTolerance * all);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto demand = demand_of(problem, stages[i].devices, stages[i].ops);
    const std::optional<double> stated = stages[i].*offset;
    const double start = stated ? *stated : book.first_fit(demand, 0, pass.loads[i]);
    pass.offsets.push_back(start);
    book.hold(demand, start, start + pass.loads[i], i);
  }
  return pass;
}

std::vector<Pass> passes_of(const Problem& problem, const std::vector<Stage>& stages,
                            const std::vector<StageLoad>& loads) {
  const auto part = [&](double StageLoad::*load) {
    std::vector<double> parts;
    for (const StageLoad& each : loads) parts.push_back(each.*load);
    return parts;
  };
  if (problem.rules().training == TrainingMode::interleaved) {
    return {pass_of(problem, stages, "", part(&StageLoad::load), &Stage::offset)};
  }
  return {
      pass_of(problem, stages, "forward", part(&StageLoad::forward), &Stage::offset),
      pass_of(problem, stages, "backward", part(&StageLoad::backward), &Stage::backward_offset)};
}

// What makes offsets and a period meaningless: numbers that are no times, and stages whose replicas
// together take more of a resource than there is.
bool check_stage_demands(const Problem& problem, const std::vector<Stage>& stages,
                         const std::vector<StageLoad>& loads, Findings& findings) {
  const std::size_t before = findings.count();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const ResourceUse& use : demand_of(problem, stages[i].devices, stages[i].ops)) {
      if (loads[i].load == 0 || !exceeds_capacity(problem, use)) continue;
      findings.add(ViolationCode::resource_exceeded, stages[i].ops, stages[i].devices,
                   "the replicas of {} on {} take {:.9g} of {}, it has {:.9g}", stage_name(i),
                   called(problem, stages[i].devices.front()), use.amount,
                   called(problem, use.resource), problem.resource(use.resource).capacity);
    }
    for (const std::optional<double> offset : {stages[i].offset, stages[i].backward_offset}) {
      if (!offset || is_time(*offset)) continue;
      findings.add(ViolationCode::not_a_number, stages[i].ops, stages[i].devices,
                   "{} on {} has the offset {}", stage_name(i),
                   called(problem, stages[i].devices.front()), *offset);
    }
  }
  return findings.count() == before;
}

// The demands of the stages during [offset, offset + load) modulo the period.
void check_demands(const Problem& problem, const std::vector<Stage>& stages, const Pass& pass,
                   double period, Findings& findings) {
  ResourceBook book(problem, kTimeTolerance * period);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (pass.loads[i] == 0) continue;
    const auto demand = demand_of(problem, stages[i].devices, stages[i].ops);
    const double start = std::fmod(pass.offsets[i], period);
    const double end = start + pass.loads[i];
    book.hold(demand, start, std::min(end, period), i);
    book.hold(demand, 0, end - period, i);
  }
  book.check(
      [&](std::size_t i) {
        return Holder{
            fmt::format("{} on {}{}{}", stage_name(i), called(problem, stages[i].devices.front()),
                        pass.name.empty() ? "" : ", ", pass.name),
            stages[i].ops, stages[i].devices};
      },
      findings);
}

bool check_period(const Problem& problem, const std::vector<Stage>& stages, const Pass& pass,
                  double period, Findings& findings) {
  const std::size_t before = findings.count();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (pass.loads[i] <= period || same_value(pass.loads[i], period)) continue;
    findings.add(ViolationCode::period_too_short, stages[i].ops, stages[i].devices,
                 "the period is {:.9g}, and the load of {} on {} is {:.9g}", period, stage_name(i),
                 called(problem, stages[i].devices.front()), pass.loads[i]);
  }
  if (findings.count() == before) check_demands(problem, stages, pass, period, findings);
  return findings.count() == before;
}

// The value where no stage wraps round: the passes one after the other.
double end_of(const std::vector<Pass>& passes) {
  double value = 0;
  for (const Pass& pass : passes) value += pass.end();
  return value;
}

// Interleaved passes: the plan may choose a period, its value.
bool chooses_period(const Plan& plan, const std::vector<Pass>& passes) {
  return passes.size() == 1 && is_time(plan.value);
}

void check_shared_value(const Problem& problem, const Plan& plan, const std::vector<Stage>& stages,
                        const std::vector<StageLoad>& loads, Findings& findings) {
  if (!check_stage_demands(problem, stages, loads, findings)) return;
  const std::vector<Pass> passes = passes_of(problem, stages, loads);
  if (chooses_period(plan, passes)) {
    check_period(problem, stages, passes.front(), plan.value, findings);
    return;
  }
  const std::size_t before = findings.count();
  for (const Pass& pass : passes) check_demands(problem, stages, pass, pass.end(), findings);
  if (findings.count() == before) check_value(plan.value, end_of(passes), findings);
}

double shared_value(const Problem& problem, const Plan& plan, const std::vector<Stage>& stages,
                    const std::vector<StageLoad>& loads) {
  Findings ignored;
  if (!check_stage_demands(problem, stages, loads, ignored)) return kInfinity;
  const std::vector<Pass> passes = passes_of(problem, stages, loads);
  const bool fits = chooses_period(plan, passes) &&
                    check_period(problem, stages, passes.front(), plan.value, ignored);
  return fits ? plan.value : end_of(passes);
}

// Memory

// The stages that have a device in each space.
Table<SpaceId, std::vector<std::size_t>> stages_by_space(const Problem& problem,
                                                         const std::vector<Stage>& stages) {
  Table<SpaceId, std::vector<std::size_t>> here(problem.space_count());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const SpaceId space : spaces_of(problem, stages[i])) here[space].push_back(i);
  }
  return here;
}

// What one device of an interleaved pipeline does, counted action by action: the most micro-batches
// that stage `own` of its `stages` has begun and not given back. `ahead` forward actions come
// first; then each forward action is followed by a backward one. Stages take turns of `turn`
// actions, forward from the first, backward from the last. After two rounds everything repeats.
std::size_t held_by_counting(std::size_t own, std::size_t stages, std::size_t turn,
                             std::size_t ahead, std::size_t actions) {
  std::size_t held = 0;
  std::size_t most = 0;
  const std::size_t last = std::min(actions, ahead + 2 * turn * stages);
  for (std::size_t forward = 0; forward < last; ++forward) {
    if (forward / turn % stages == own) most = std::max(most, ++held);
    if (forward < ahead) continue;
    const std::size_t backward = forward - ahead;
    if (stages - 1 - backward / turn % stages == own) --held;
  }
  return most;
}

// Samples whose tensors each stage holds at once.
std::vector<double> held_samples(const Problem& problem, const std::vector<Stage>& stages) {
  const Rules& rules = problem.rules();
  std::vector<double> held(stages.size(), 1);
  if (!problem.has_backward_ops()) return held;
  std::set<SpaceId> spaces;
  for (const Stage& stage : stages) spaces.insert(problem.space(stage.devices.front()));
  const std::size_t loop = spaces.size();
  const std::size_t own = (stages.size() + loop - 1) / loop;  // stages of each space
  // In a stream without end rounds of `loop` samples follow each other.
  const bool ends = rules.micro_batches > 0;
  const std::size_t samples =
      ends ? static_cast<std::size_t>(rules.micro_batches) : loop * (3 + 2 * own);
  const std::size_t turn = samples < loop ? samples : samples / (samples / loop);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::size_t count = 0;
    switch (rules.schedule) {
      case PipelineSchedule::gpipe:
        count = samples;
        break;
      case PipelineSchedule::one_forward_one_backward:
        count = stages.size() - i;
        break;
      case PipelineSchedule::interleaved: {
        const std::size_t ahead = (own - 1) * turn + 2 * (loop - 1 - i % loop);
        count =
            held_by_counting(i / loop, own, turn, std::min(ahead, samples * own), samples * own);
        break;
      }
    }
    held[i] = static_cast<double>(ends ? std::min(count, samples) : count);
  }
  return held;
}

// Bytes of the tensors that the stages of each space produce or receive, for the samples in flight.
// What host devices touch is in host memory, which is not counted.
Table<SpaceId, double> bytes_in_flight(const Problem& problem, const std::vector<Stage>& stages) {
  Table<OpId, std::size_t> stage_of(problem.op_count(), 0);
  std::vector<std::vector<SpaceId>> spaces;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const OpId op : stages[i].ops) stage_of[op] = i;
    const bool on_host = shares_host_memory(problem, stages[i].devices.front());
    spaces.push_back(on_host ? std::vector<SpaceId>{} : spaces_of(problem, stages[i]));
  }
  const std::vector<double> held = held_samples(problem, stages);
  Table<SpaceId, double> bytes(problem.space_count(), 0);
  Table<SpaceId, double> samples(problem.space_count(), 0);
  for (const TensorId tensor : problem.tensors()) {
    samples.assign(problem.space_count(), 0);
    const auto touch = [&](OpId op) {
      const std::size_t stage = stage_of[op];
      for (const SpaceId space : spaces[stage]) {
        samples[space] = std::max(samples[space], held[stage]);
      }
    };
    touch(problem.producer(tensor));
    for (const OpId consumer : problem.consumers(tensor)) touch(consumer);
    for (const SpaceId space : problem.spaces()) {
      bytes[space] += samples[space] * problem.tensor(tensor).bytes;
    }
  }
  return bytes;
}

void check_memory(const Problem& problem, const std::vector<Stage>& stages, Findings& findings) {
  const bool peak = problem.rules().memory == MemoryModel::peak;
  const auto here = stages_by_space(problem, stages);
  const auto devices = devices_by_space(problem);
  const Table<SpaceId, double> in_flight =
      peak ? bytes_in_flight(problem, stages) : Table<SpaceId, double>(problem.space_count(), 0);
  for (const SpaceId space : problem.spaces()) {
    std::vector<OpId> ops;
    for (const std::size_t stage : here[space]) {
      ops.insert(ops.end(), stages[stage].ops.begin(), stages[stage].ops.end());
    }
    if (!check_resident_memory(problem, {space, ops}, findings)) continue;
    const double resident = resident_bytes(problem, ops);
    const double memory = problem.space_memory(space);
    if (fits(resident + in_flight[space], memory)) continue;
    findings.add(ViolationCode::peak_memory_exceeded, ops, devices[space],
                 "{} holds {:.9g} bytes of weights and {:.9g} of tensors of the samples in flight, "
                 "it has {:.9g}",
                 called(problem, space), resident, in_flight[space], memory);
  }
}

}  // namespace

void check_pipeline(const Problem& problem, const Plan& plan, Findings& findings) {
  if (!check_stage_records(problem, plan, findings)) return;
  const std::vector<Stage> stages = stages_of(problem, plan);
  for (const Stage& stage : stages) check_replicas(problem, stage, findings);
  check_memory(problem, stages, findings);
  if (problem.rules().contiguity == Contiguity::joint) {
    check_joint_contiguity(problem, stages, !plan.stages.empty(), findings);
  }
  if (problem.rules().contiguity == Contiguity::per_device) {
    check_own_contiguity(problem, stages, findings);
  }
  const std::vector<StageLoad> loads = stage_loads(problem, plan.placement, stages);
  check_loads(problem, plan, loads, findings);
  if (shares_resources(problem)) {
    check_shared_value(problem, plan, stages, loads, findings);
  } else {
    check_value(plan.value, value_of(problem, loads), findings);
  }
}

double pipeline_value(const Problem& problem, const Plan& plan) {
  Findings ignored;
  if (!check_stage_records(problem, plan, ignored)) return kInfinity;
  const std::vector<Stage> stages = stages_of(problem, plan);
  const std::vector<StageLoad> loads = stage_loads(problem, plan.placement, stages);
  return shares_resources(problem) ? shared_value(problem, plan, stages, loads)
                                   : value_of(problem, loads);
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
