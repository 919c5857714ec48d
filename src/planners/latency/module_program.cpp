#include "planners/latency/module_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planners/latency/latency.h"
#include "planners/methods/cpsat_model.h"
#include "problem/part.h"

namespace placewright {
namespace {

constexpr double kDeterministicSecondsPerStep = 1e-5;
constexpr double kDeterministicSecondsPerWidth = 1e-3;
constexpr std::size_t kWidest = std::size_t{1} << 40;  // as long as the clock allows
constexpr double kLeastSeconds = 0.01;
constexpr std::uint64_t kMovesPerWidth = 4000;  // of local search
constexpr std::uint64_t kMovesPerStep = 20;
constexpr double kNextBound = 0.5;  // of the gap, where it was not closed: what is tried next

Problem problem_of(const Problem& whole, const CutSegment& segment) {
  std::vector<OpId> ops;
  if (segment.entry.valid()) ops.push_back(segment.entry);
  ops.insert(ops.end(), segment.ops.begin(), segment.ops.end());
  ProblemDraft draft = part_of(whole, ops);
  if (segment.entry.valid()) {
    for (double& time : draft.ops.front().time) {
      if (time < kUnsupported) time = 0;
    }
    for (Model& model : draft.models) model.arrival = 0;
  }
  return Problem(std::move(draft));
}

// Values as bytes, each list behind its length.
class Bytes {
 public:
  template <class Value>
  void add(const std::vector<Value>& values) {
    const std::size_t count = values.size();
    text_.append(reinterpret_cast<const char*>(&count), sizeof count);
    text_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(Value));
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

ProgrammedModule::ProgrammedModule(const Problem& whole, const CutSegment& segment)
    : ops_(segment.ops),
      has_entry_(segment.entry.valid()),
      has_exit_(segment.exit.valid()),
      problem_(problem_of(whole, segment)) {}

std::string ProgrammedModule::signature() const {
  Bytes bytes;
  bytes.add(std::vector<char>{has_entry_, has_exit_});
  bytes.add(std::vector<double>{problem_.draft().models.front().arrival});
  for (const Op& op : problem_.draft().ops) {
    bytes.add(op.time);
    bytes.add(op.share);
    bytes.add(std::vector<DeviceId>{op.pinned_to});
  }
  for (const TensorId tensor : problem_.tensors()) {
    bytes.add(std::vector<OpId>{problem_.producer(tensor)});
    const auto readers = problem_.consumers(tensor);
    bytes.add(std::vector<OpId>(readers.begin(), readers.end()));
    std::vector<double> overheads;
    for (const DeviceId device : problem_.devices()) {
      overheads.push_back(problem_.send_overhead(tensor, device));
      overheads.push_back(problem_.receive_overhead(tensor, device));
    }
    bytes.add(overheads);
  }
  for (const std::vector<OpId>& group : problem_.draft().colocated) bytes.add(group);
  return std::move(bytes).text();
}

std::size_t ProgrammedModule::widest() const {
  return kWidest;
}

std::unique_ptr<PassageSearch> ProgrammedModule::search(std::size_t entry, std::size_t exit) const {
  return std::make_unique<ModuleProgram>(*this, DeviceId{entry}, DeviceId{exit});
}

ModuleProgram::ModuleProgram(const ProgrammedModule& module, DeviceId entry_device,
                             DeviceId exit_device)
    : module_(module),
      problem_(module.problem()),
      given_(problem_.op_count()),
      evaluator_(problem_) {
  if (module.entry().valid()) give(module.entry(), entry_device);
  if (module.exit().valid()) give(module.exit(), exit_device);
}

// To the op and all that must be with it.
void ModuleProgram::give(OpId op, DeviceId device) {
  for (const OpId member : problem_.group_ops(problem_.group(op))) {
    possible_ = possible_ && problem_.allowed(member, device) &&
                (!given_[member].valid() || given_[member] == device);
    given_[member] = device;
  }
}

double ModuleProgram::root_bound() {
  if (!possible_) return kInfinity;
  return module_.ops().size() == 1 && module_.exit().valid() ? value_of(simple_items()) : 0;
}

ModuleItems ModuleProgram::simple_items() {
  ModuleItems best;
  double least = kInfinity;
  for (const DeviceId device : problem_.devices()) {
    ModuleItems items = all_on(device);
    const double value = items.empty() ? kInfinity : value_of(items);
    if (value >= least) continue;
    least = value;
    best = std::move(items);
  }
  return best;
}

// Empty: some op may not be there.
ModuleItems ModuleProgram::all_on(DeviceId device) const {
  Placement placement = given_;
  for (const OpId op : problem_.ops()) {
    if (placement[op].valid()) continue;
    if (!problem_.group_allowed(problem_.group(op), device)) return {};
    placement[op] = device;
  }
  return in_order(placement, Table<OpId, double>(problem_.op_count(), 0));
}

// By start; those that start together, in topological order.
ModuleItems ModuleProgram::in_order(const Placement& placement,
                                    const Table<OpId, double>& start) const {
  ModuleItems items;
  for (std::size_t place = 0; place < module_.ops().size(); ++place) {
    const DeviceId device = placement[module_.number(place)];
    items.push_back({ModuleItem::Kind::op, static_cast<std::uint8_t>(device.index()),
                     static_cast<std::uint16_t>(place)});
  }
  std::ranges::stable_sort(items, {},
                           [&](const ModuleItem& item) { return start[module_.number(item.id)]; });
  return items;
}

ModuleProgram::Decisions ModuleProgram::decisions(const ModuleItems& items) const {
  Decisions decisions{.order = {}, .placement = given_};
  if (module_.entry().valid()) decisions.order.push_back(module_.entry());
  for (const ModuleItem& item : items) {
    decisions.order.push_back(module_.number(item.id));
    decisions.placement[decisions.order.back()] = DeviceId{item.device};
  }
  return decisions;
}

ModuleResult ModuleProgram::run(const PassageGoal& goal, const PassageLimits& limits) {
  ModuleResult best;
  if (!possible_) {
    best.lower_bound = kInfinity;
    best.complete = true;
    return best;
  }
  best.lower_bound = goal.at_least;
  improve(*goal.known, goal, limits, best);
  if (limits.should_stop(0)) return best;
  prove(std::min(goal.cutoff, best.value), goal, limits, best);
  if (!best.complete && !limits.should_stop(0)) {
    const double upper = std::min(goal.cutoff, best.value);
    const double half_way = best.lower_bound + kNextBound * (upper - best.lower_bound);
    prove(half_way, goal, limits, best);
    best.complete = best.complete && best.value <= half_way;
  }
  return best;
}

// Local search finds good schedules far sooner than the program does, and the program proves more
// below a good one.
void ModuleProgram::improve(const ModuleItems& known, const PassageGoal& goal,
                            const PassageLimits& limits, ModuleResult& best) {
  ProblemDraft draft = problem_.draft();
  for (const OpId op : problem_.ops()) {
    if (given_[op].valid()) draft.ops[op.index()].pinned_to = given_[op];
  }
  const Problem pinned(std::move(draft));
  const std::uint64_t moves = kMovesPerWidth * goal.width;
  const PlannerEntry planner = search();
  Control control(planner.name,
                  {.seconds = limits.seconds_left(), .steps = moves, .seed = limits.seed},
                  limits.interruption);
  std::optional<Plan> start;
  if (!known.empty()) {
    const auto [order, placement] = decisions(known);
    start = schedule_plan(problem_, placement, evaluator_.schedule(order, placement));
    control.start = &*start;
  }
  const Answer answer = planner.plan(pinned, Settings{planner.options}, control);
  if (answer.plan) take(answer.plan->placement, *answer.plan->schedule, best);
  static_cast<void>(limits.should_stop(moves / kMovesPerStep));
}

// Looks for a schedule of at most this length.
void ModuleProgram::prove(double at_most, const PassageGoal& goal, const PassageLimits& limits,
                          ModuleResult& best) {
  ScheduleScope scope = ScheduleScope::whole(problem_);
  scope.given = given_;
  scope.memory = false;
  ScheduleModel model(problem_, std::move(scope), at_most);
  model.require_at_least(best.lower_bound);
  if (!best.items.empty()) {
    const auto [order, placement] = decisions(best.items);
    model.hint(placement, evaluator_.schedule(order, placement));
  }
  const ScheduleSolution solution = model.solve(
      {.seconds = std::max(kLeastSeconds, limits.seconds_left()),
       .deterministic_time = kDeterministicSecondsPerWidth * static_cast<double>(goal.width),
       .seed = limits.seed,
       .stop = limits.interruption});
  best.complete = solution.complete;
  best.lower_bound = std::max(best.lower_bound, std::min(solution.lower_bound, at_most));
  if (solution.found) take(solution.placement, solution.schedule, best);
  static_cast<void>(limits.should_stop(
      1 + static_cast<std::uint64_t>(solution.deterministic_time / kDeterministicSecondsPerStep)));
}

void ModuleProgram::take(const Placement& placement, const Schedule& schedule, ModuleResult& best) {
  ModuleItems items = in_order(placement, schedule.start);
  const double value = value_of(items);
  if (value >= best.value) return;
  best.value = value;
  best.items = std::move(items);
}

ModuleItems ModuleProgram::items_of(
    const Plan& plan, const Table<TensorId, std::vector<const Transfer*>>& /*transfers*/) const {
  Placement placement = given_;
  Table<OpId, double> start(problem_.op_count(), 0);
  for (std::size_t place = 0; place < module_.ops().size(); ++place) {
    placement[module_.number(place)] = plan.placement[module_.ops()[place]];
    start[module_.number(place)] = plan.schedule->start[module_.ops()[place]];
  }
  return in_order(placement, start);
}

double ModuleProgram::value_of(const ModuleItems& items) {
  const auto [order, placement] = decisions(items);
  return evaluator_.value(order, placement);
}

double ModuleProgram::replay(const ModuleItems& items, double origin, Plan& plan) {
  const auto [order, placement] = decisions(items);
  const Schedule schedule = evaluator_.schedule(order, placement);
  for (std::size_t place = 0; place < module_.ops().size(); ++place) {
    const OpId here = module_.number(place);
    const OpId there = module_.ops()[place];
    plan.placement[there] = placement[here];
    plan.schedule->start[there] = origin + schedule.start[here];
    plan.schedule->end[there] = origin + schedule.end[here];
  }
  return origin + schedule_value(problem_, schedule.end);
}

}  // namespace placewright
