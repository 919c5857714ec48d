#include "verify/schedule.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "verify/intervals.h"
#include "verify/movements.h"
#include "verify/placement.h"
#include "verify/resources.h"

namespace placewright::verifying {
namespace {

bool has_schedule(const Problem& problem, const Plan& plan) {
  return plan.schedule && plan.schedule->start.size() == problem.op_count() &&
         plan.schedule->end.size() == problem.op_count();
}

double makespan(const Schedule& schedule) {
  double latest = 0;
  for (const double end : schedule.end) latest = std::max(latest, end);
  return latest;
}

double total_completion(const Problem& problem, const Schedule& schedule) {
  Table<ModelId, double> completion(problem.model_count(), 0);
  for (const ModelId model : problem.models()) completion[model] = problem.model(model).arrival;
  for (const OpId op : problem.ops()) {
    double& latest = completion[problem.op(op).model];
    latest = std::max(latest, schedule.end[op]);
  }
  double total = 0;
  for (const ModelId id : problem.models()) {
    total += problem.model(id).weight * (completion[id] - problem.model(id).arrival);
  }
  return total;
}

double value_of(const Problem& problem, const Schedule& schedule) {
  return problem.objective() == Objective::latency ? makespan(schedule)
                                                   : total_completion(problem, schedule);
}

double horizon_of(const Schedule& schedule) {
  double horizon = makespan(schedule);
  for (const Transfer& transfer : schedule.transfers) horizon = std::max(horizon, transfer.end);
  return horizon;
}

bool check_numbers(const Problem& problem, const Schedule& schedule, Findings& findings) {
  const std::size_t before = findings.count();
  for (const OpId op : problem.ops()) {
    if (is_time(schedule.start[op]) && is_time(schedule.end[op])) continue;
    findings.add(ViolationCode::not_a_number, {op}, {}, "{} runs from {} to {}",
                 called(problem, op), schedule.start[op], schedule.end[op]);
  }
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    if (is_time(transfer.start) && is_time(transfer.end)) continue;
    findings.add(ViolationCode::not_a_number, {}, {}, "transfer {} runs from {} to {}", i,
                 transfer.start, transfer.end);
  }
  return findings.count() == before;
}

// A schedule whose numbers are times, beside the movements that its placement needs.
class ScheduleCheck {
 public:
  ScheduleCheck(const Problem& problem, const Plan& plan, Findings& findings)
      : problem_(problem),
        placement_(plan.placement),
        schedule_(*plan.schedule),
        findings_(findings),
        tolerance_(kTimeTolerance * horizon_of(schedule_)),
        traffic_(traffic_of(problem, placement_)),
        performed_(traffic_.movements.value_count(), nullptr) {}

  void run() {
    match_transfers();
    compute_durations();
    check_op_durations();
    check_arrivals();
    check_inputs();
    check_transfer_times();
    check_devices();
    check_resources();
    if (problem_.rules().congestion) check_ports();
    const bool weights_fit = check_weights();
    if (problem_.rules().memory == MemoryModel::peak && weights_fit) check_peak_memory();
  }

 private:
  // Calls `visit(movement, transfer)` for each needed movement that the schedule performs.
  template <class Visit>
  void for_each_performed(Visit visit) const {
    for (const TensorId tensor : problem_.tensors()) {
      const auto row = traffic_.movements[tensor];
      for (std::size_t i = 0; i < row.size(); ++i) {
        const Transfer* transfer = performed_[traffic_.movements.offset(tensor) + i];
        if (transfer != nullptr) visit(row[i], *transfer);
      }
    }
  }

  // The end of the tensor's movement for which `is_wanted`; nothing when it is missing.
  template <class IsWanted>
  [[nodiscard]] std::optional<double> end_of_movement(TensorId tensor, IsWanted is_wanted) const {
    const auto row = traffic_.movements[tensor];
    const auto found = std::find_if(row.begin(), row.end(), is_wanted);
    if (found == row.end()) return std::nullopt;
    const auto position = static_cast<std::size_t>(found - row.begin());
    const Transfer* transfer = performed_[traffic_.movements.offset(tensor) + position];
    return transfer == nullptr ? std::nullopt : std::optional(transfer->end);
  }

  // Whether the movement leads into the space of the device.
  [[nodiscard]] bool arrives_in(const Movement& movement, DeviceId device) const {
    return movement.to.valid() && problem_.same_space(movement.to, device);
  }

  [[nodiscard]] std::optional<double> in_host_memory(TensorId tensor) const {
    const OpId producer = problem_.producer(tensor);
    if (shares_host_memory(problem_, placement_[producer])) return schedule_.end[producer];
    return end_of_movement(tensor, [](const Movement& m) { return m.leg == Leg::out; });
  }

  [[nodiscard]] std::optional<double> available(TensorId tensor, DeviceId device) const {
    const OpId producer = problem_.producer(tensor);
    if (problem_.same_space(placement_[producer], device)) return schedule_.end[producer];
    if (shares_host_memory(problem_, device)) return in_host_memory(tensor);
    return end_of_movement(tensor, [&](const Movement& m) { return arrives_in(m, device); });
  }

  void match_transfers();
  void match_transfer(const Transfer& transfer);
  [[nodiscard]] bool endpoints_right(const Transfer& transfer) const;
  void compute_durations();
  void check_op_durations();
  void check_arrivals();
  void check_inputs();
  void check_transfer_times();
  void check_devices();
  void check_resources();
  void check_ports();
  bool check_weights();
  void check_peak_memory();
  [[nodiscard]] Table<SpaceId, std::vector<Holding>> tensors_alive() const;

  const Problem& problem_;
  const Placement& placement_;
  const Schedule& schedule_;
  Findings& findings_;
  double tolerance_;
  Traffic traffic_;
  std::vector<const Transfer*> performed_;  // for each movement; null when missing
  Table<OpId, double> duration_;
};

bool ScheduleCheck::endpoints_right(const Transfer& transfer) const {
  if (transfer.tensor.index() >= problem_.tensor_count()) return false;
  const DeviceId home = placement_[problem_.producer(transfer.tensor)];
  const bool to_device = transfer.to.index() < problem_.device_count();
  const bool through_host = problem_.interconnect() == InterconnectKind::host;
  switch (transfer.leg) {
    case Leg::direct:
      return !through_host && transfer.from == home && to_device;
    case Leg::out:
      return through_host && transfer.from == home && !transfer.to.valid();
    case Leg::in:
      return through_host && !transfer.from.valid() && to_device;
  }
  return false;
}

void ScheduleCheck::match_transfer(const Transfer& transfer) {
  const auto position = &transfer - schedule_.transfers.data();
  if (!endpoints_right(transfer)) {
    findings_.add(ViolationCode::transfer_endpoints_wrong, {}, {},
                  "transfer {} does not lead from where its tensor is produced to a device of the "
                  "problem",
                  position);
    return;
  }
  const auto row = traffic_.movements[transfer.tensor];
  const auto found = std::find_if(row.begin(), row.end(), [&](const Movement& movement) {
    return movement.leg == transfer.leg &&
           (movement.leg == Leg::out || arrives_in(movement, transfer.to));
  });
  const OpId producer = problem_.producer(transfer.tensor);
  if (found == row.end()) {
    findings_.add(ViolationCode::transfer_unneeded, {producer}, {},
                  "transfer {} moves {} to where it is not read or is already", position,
                  called(problem_, transfer.tensor));
    return;
  }
  const Transfer*& performed = performed_[traffic_.movements.offset(transfer.tensor) +
                                          static_cast<std::size_t>(found - row.begin())];
  if (performed != nullptr) {
    findings_.add(ViolationCode::transfer_duplicate, {producer}, endpoints(*found),
                  "{} is moved twice, from {:.9g} and from {:.9g}", called(problem_, *found),
                  performed->start, transfer.start);
    return;
  }
  performed = &transfer;
  if (found->to != transfer.to) {
    findings_.add(ViolationCode::transfer_receiver_wrong, {producer}, {transfer.to, found->to},
                  "transfer {} moves {} to {}, its first reader {} is on {}", position,
                  called(problem_, transfer.tensor), called(problem_, transfer.to),
                  located(problem_, problem_.space(found->to)), called(problem_, found->to));
  }
}

void ScheduleCheck::match_transfers() {
  for (const Transfer& transfer : schedule_.transfers) match_transfer(transfer);
  for (const TensorId tensor : problem_.tensors()) {
    const auto row = traffic_.movements[tensor];
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (performed_[traffic_.movements.offset(tensor) + i] != nullptr) continue;
      findings_.add(ViolationCode::transfer_missing, {problem_.producer(tensor)}, endpoints(row[i]),
                    "no transfer moves {}", called(problem_, row[i]));
    }
  }
}

void ScheduleCheck::compute_durations() {
  duration_.assign(problem_.op_count(), 0);
  for (const OpId op : problem_.ops()) duration_[op] = problem_.time(op, placement_[op]);
  if (!problem_.has_overheads()) return;
  for (const TensorId tensor : problem_.tensors()) {
    duration_[problem_.producer(tensor)] += send_overheads(problem_, placement_, traffic_, tensor);
    for (const OpId receiver : traffic_.receivers[tensor]) {
      duration_[receiver] += problem_.receive_overhead(tensor, placement_[receiver]);
    }
  }
}

void ScheduleCheck::check_op_durations() {
  for (const OpId op : problem_.ops()) {
    const double start = schedule_.start[op];
    const double end = schedule_.end[op];
    if (std::abs(end - start - duration_[op]) <= tolerance_) continue;
    findings_.add(ViolationCode::op_duration_wrong, {op}, {placement_[op]},
                  "{} runs from {:.9g} to {:.9g} on {}, where it takes {:.9g}",
                  called(problem_, op), start, end, called(problem_, placement_[op]),
                  duration_[op]);
  }
}

void ScheduleCheck::check_arrivals() {
  for (const OpId op : problem_.ops()) {
    const Model& model = problem_.model(problem_.op(op).model);
    if (schedule_.start[op] >= model.arrival - tolerance_) continue;
    findings_.add(ViolationCode::starts_before_arrival, {op}, {placement_[op]},
                  "{} starts at {:.9g}, its model '{}' arrives at {:.9g}", called(problem_, op),
                  schedule_.start[op], model.name, model.arrival);
  }
}

void ScheduleCheck::check_inputs() {
  for (const TensorId tensor : problem_.tensors()) {
    for (const OpId consumer : problem_.consumers(tensor)) {
      const DeviceId device = placement_[consumer];
      const std::optional<double> time = available(tensor, device);
      if (!time || schedule_.start[consumer] >= *time - tolerance_) continue;
      findings_.add(ViolationCode::input_not_arrived, {problem_.producer(tensor), consumer},
                    {device}, "{} starts at {:.9g}, {} is {} at {:.9g}", called(problem_, consumer),
                    schedule_.start[consumer], called(problem_, tensor),
                    located(problem_, problem_.space(device)), *time);
    }
  }
}

void ScheduleCheck::check_transfer_times() {
  for_each_performed([&](const Movement& movement, const Transfer& transfer) {
    const OpId producer = problem_.producer(movement.tensor);
    if (std::abs(transfer.end - transfer.start - movement.duration) > tolerance_) {
      findings_.add(ViolationCode::transfer_duration_wrong, {producer}, endpoints(movement),
                    "the transfer of {} runs from {:.9g} to {:.9g}, it takes {:.9g}",
                    called(problem_, movement), transfer.start, transfer.end, movement.duration);
    }
    const std::optional<double> there = movement.leg == Leg::in
                                            ? in_host_memory(movement.tensor)
                                            : std::optional(schedule_.end[producer]);
    if (!there || transfer.start >= *there - tolerance_) return;
    findings_.add(ViolationCode::transfer_too_early, {producer}, endpoints(movement),
                  "the transfer of {} starts at {:.9g}, the tensor is there at {:.9g}",
                  called(problem_, movement), transfer.start, *there);
  });
}

void ScheduleCheck::check_devices() {
  Table<DeviceId, std::vector<Interval>> busy(problem_.device_count());
  for (const OpId op : problem_.ops()) {
    if (duration_[op] == 0) continue;
    busy[placement_[op]].push_back({schedule_.start[op], schedule_.end[op], op.index()});
  }
  for (const DeviceId device : problem_.devices()) {
    const auto lanes = static_cast<std::size_t>(problem_.device(device).lanes);
    for (const Crowd& crowd : crowds(busy[device], lanes, tolerance_)) {
      const OpId late{crowd.late};
      std::vector<OpId> ops{late};
      for (const std::size_t running : crowd.running) ops.emplace_back(running);
      findings_.add(ViolationCode::device_overlap, ops, {device},
                    "{} starts at {:.9g} on {}, which runs at most {} at once and is taken by {} "
                    "until {:.9g}",
                    called(problem_, late), schedule_.start[late], called(problem_, device), lanes,
                    called(problem_, ops[1]), schedule_.end[ops[1]]);
    }
  }
}

void ScheduleCheck::check_resources() {
  if (!shares_resources(problem_)) return;
  ResourceBook book(problem_, tolerance_);
  for (const OpId op : problem_.ops()) {
    if (duration_[op] == 0) continue;
    const auto demand = demand_of(problem_, {&placement_[op], 1}, {&op, 1});
    book.hold(demand, schedule_.start[op], schedule_.end[op], op.index());
  }
  book.check(
      [&](std::size_t item) {
        const OpId op{item};
        return Holder{
            fmt::format("{} on {}", called(problem_, op), called(problem_, placement_[op])),
            {op},
            {placement_[op]}};
      },
      findings_);
}

void ScheduleCheck::check_ports() {
  std::vector<const Movement*> movements;
  Table<SpaceId, std::vector<Interval>> out_port(problem_.space_count());
  Table<SpaceId, std::vector<Interval>> in_port(problem_.space_count());
  for_each_performed([&](const Movement& movement, const Transfer& transfer) {
    if (movement.duration == 0) return;
    const Interval interval{transfer.start, transfer.end, movements.size()};
    movements.push_back(&movement);
    if (movement.from.valid()) out_port[problem_.space(movement.from)].push_back(interval);
    if (movement.to.valid()) in_port[problem_.space(movement.to)].push_back(interval);
  });
  const auto devices = devices_by_space(problem_);
  const auto check = [&](const std::vector<Interval>& port, SpaceId space, std::string_view side) {
    for (const Crowd& crowd : crowds(port, 1, tolerance_)) {
      const Movement& late = *movements[crowd.late];
      const Movement& running = *movements[crowd.running.front()];
      findings_.add(ViolationCode::port_overlap,
                    {problem_.producer(late.tensor), problem_.producer(running.tensor)},
                    devices[space], "the {}-port of {} carries {} and {} at once", side,
                    called(problem_, space), called(problem_, running), called(problem_, late));
    }
  };
  for (const SpaceId space : problem_.spaces()) {
    check(out_port[space], space, "out");
    check(in_port[space], space, "in");
  }
}

bool ScheduleCheck::check_weights() {
  bool fit = true;
  const auto ops = ops_by_space(problem_, placement_);
  for (const SpaceId space : problem_.spaces()) {
    fit = check_resident_memory(problem_, {space, ops[space]}, findings_) && fit;
  }
  return fit;
}

// In the producer's space from the producer's start until its last use there, in a receiving space
// from the start of the transfer in. Host memory is not counted.
Table<SpaceId, std::vector<Holding>> ScheduleCheck::tensors_alive() const {
  Table<SpaceId, std::vector<Holding>> alive(problem_.space_count());
  for (const TensorId tensor : problem_.tensors()) {
    const double bytes = problem_.tensor(tensor).bytes;
    const OpId producer = problem_.producer(tensor);
    const auto last_use = [&](SpaceId space, double latest) {
      for (const OpId consumer : problem_.consumers(tensor)) {
        if (problem_.space(placement_[consumer]) == space) {
          latest = std::max(latest, schedule_.end[consumer]);
        }
      }
      return latest;
    };
    const DeviceId home = placement_[producer];
    double home_end = last_use(problem_.space(home), schedule_.end[producer]);
    const auto row = traffic_.movements[tensor];
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Transfer* transfer = performed_[traffic_.movements.offset(tensor) + i];
      if (transfer == nullptr) continue;
      if (row[i].from.valid()) home_end = std::max(home_end, transfer->end);
      if (!row[i].to.valid()) continue;
      const SpaceId to = problem_.space(row[i].to);
      alive[to].push_back({transfer->start, last_use(to, transfer->end), bytes, producer.index()});
    }
    if (shares_host_memory(problem_, home)) continue;
    alive[problem_.space(home)].push_back(
        {schedule_.start[producer], home_end, bytes, producer.index()});
  }
  return alive;
}

void ScheduleCheck::check_peak_memory() {
  const auto ops = ops_by_space(problem_, placement_);
  const auto devices = devices_by_space(problem_);
  const auto alive = tensors_alive();
  for (const SpaceId space : problem_.spaces()) {
    const Peak peak = highest_level(alive[space], tolerance_);
    const double resident = resident_bytes(problem_, ops[space]);
    const double memory = problem_.space_memory(space);
    if (fits(resident + peak.level, memory)) continue;
    const OpId last{peak.item};
    findings_.add(
        ViolationCode::peak_memory_exceeded, {last}, devices[space],
        "at {:.9g}, with the tensor of {}, {} holds {:.9g} bytes of weights and {:.9g} of "
        "tensors, it has {:.9g}",
        peak.time, called(problem_, last), called(problem_, space), resident, peak.level, memory);
  }
}

}  // namespace

void check_schedule(const Problem& problem, const Plan& plan, Findings& findings) {
  if (!has_schedule(problem, plan)) {
    findings.add(ViolationCode::schedule_missing, {}, {},
                 "the plan has no schedule with a start and an end for each of the {} ops",
                 problem.op_count());
    return;
  }
  if (!check_numbers(problem, *plan.schedule, findings)) return;
  ScheduleCheck(problem, plan, findings).run();
  check_value(plan.value, value_of(problem, *plan.schedule), findings);
}

double schedule_value(const Problem& problem, const Plan& plan) {
  return has_schedule(problem, plan) ? value_of(problem, *plan.schedule) : kInfinity;
}

}  // namespace placewright::verifying
