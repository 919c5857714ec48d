#include "analysis/conflict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/variation.h"
#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "planners/methods/packing.h"
#include "planning/feasibility.h"
#include "planning/service.h"
#include "planning/sizes.h"
#include "problem/memory_spaces.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// A question may take this share of the time that is left.
constexpr double kShareOfTime = 0.2;

bool confined(const Problem& problem, OpId op) {
  const auto devices = problem.devices();
  return std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return problem.time(op, device) == kUnsupported; });
}

bool lacks_link(const Problem& problem, DeviceId from, DeviceId to) {
  const auto tensors = problem.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](TensorId tensor) { return !problem.reachable(tensor, from, to); });
}

void add_missing_links(const Problem& problem, std::vector<Constraint>& constraints) {
  if (problem.interconnect() != InterconnectKind::links) return;
  const std::vector<DeviceId> devices = first_devices_of_spaces(problem);
  for (const DeviceId from : devices) {
    for (const DeviceId to : devices) {
      if (from != to && lacks_link(problem, from, to)) {
        constraints.push_back({ConstraintKind::missing_link, from.index(), to.index()});
      }
    }
  }
}

void add_link(ProblemDraft& draft, DeviceId from, DeviceId to) {
  const bool there =
      std::any_of(draft.cluster.links.begin(), draft.cluster.links.end(),
                  [&](const Link& link) { return link.from == from && link.to == to; });
  if (!there) draft.cluster.links.push_back({from, to});
  const std::size_t pair = from.index() * draft.cluster.devices.size() + to.index();
  for (Tensor& tensor : draft.tensors) {
    if (!tensor.link_times.empty() && tensor.link_times[pair] == kInfinity) {
      tensor.link_times[pair] = 0;
    }
  }
}

// Between the spaces of the two devices, which all have the same.
void add_links(ProblemDraft& draft, DeviceId from, DeviceId to) {
  for (const DeviceId sender : devices_beside(draft.cluster, from)) {
    for (const DeviceId receiver : devices_beside(draft.cluster, to)) {
      add_link(draft, sender, receiver);
    }
  }
}

void drop(ProblemDraft& draft, const Constraint& constraint) {
  switch (constraint.kind) {
    case ConstraintKind::memory:
      stated_memory(draft.cluster, DeviceId{constraint.index}) = kInfinity;
      return;
    case ConstraintKind::pin:
      draft.ops[constraint.index].pinned_to = DeviceId{};
      return;
    case ConstraintKind::colocation:
      draft.colocated[constraint.index].clear();
      return;
    case ConstraintKind::support:
      for (double& time : draft.ops[constraint.index].time) {
        if (time == kUnsupported) time = 0;
      }
      return;
    case ConstraintKind::missing_link:
      add_links(draft, DeviceId{constraint.index}, DeviceId{constraint.other});
      return;
    case ConstraintKind::contiguity:
      draft.rules.contiguity = Contiguity::none;
      return;
    case ConstraintKind::calls:
      draft.rules.calls_per_device = static_cast<int>(draft.ops.size());
      return;
    case ConstraintKind::peak_memory:
      draft.rules.memory = MemoryModel::resident;
      return;
  }
}

// QuickXplain: the members of `open` that, with `kept`, cannot hold together.
class Search {
 public:
  Search(const Problem& problem, FeasibilityOracle& oracle) : problem_(problem), oracle_(oracle) {}

  std::vector<Constraint> run(std::span<const Constraint> open, bool kept_grew) {
    if (kept_grew && cannot_hold()) return {};
    if (open.size() <= 1) return {open.begin(), open.end()};
    const auto first = open.first(open.size() / 2);
    const auto second = open.subspan(open.size() / 2);
    keep(first);
    std::vector<Constraint> members = run(second, true);
    release(first.size());
    keep(members);
    const std::vector<Constraint> others = run(first, !members.empty());
    release(members.size());
    members.insert(members.end(), others.begin(), others.end());
    return members;
  }

  [[nodiscard]] bool always_knew() const { return always_knew_; }

 private:
  bool cannot_hold() {
    const Verdict verdict = oracle_.ask(with_only(problem_, kept_));
    always_knew_ = always_knew_ && verdict != Verdict::unknown;
    return verdict == Verdict::infeasible;
  }
  void keep(std::span<const Constraint> constraints) {
    kept_.insert(kept_.end(), constraints.begin(), constraints.end());
  }
  void release(std::size_t count) { kept_.resize(kept_.size() - count); }

  const Problem& problem_;
  FeasibilityOracle& oracle_;
  std::vector<Constraint> kept_;
  bool always_knew_ = true;
};

// Rules on the shape of a plan; the others speak of where ops are.
bool is_rule(ConstraintKind kind) {
  return kind == ConstraintKind::contiguity || kind == ConstraintKind::calls ||
         kind == ConstraintKind::peak_memory;
}

std::string names_of(const Problem& problem, const std::vector<OpId>& ops) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, ops.size()); ++i) {
    names.push_back(fmt::format("'{}'", problem.op(ops[i]).name));
  }
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  return ops.size() > kShown ? fmt::format("{} and {} more", list, ops.size() - kShown) : list;
}

// The factor at which the fullest memory of the placement is exactly full; no more than `factor`,
// which is known to do. Peak memory is not a matter of the placement alone.
double factor_filled(const Problem& problem, const Placement& placement, double factor) {
  if (problem.rules().memory == MemoryModel::peak) return factor;
  double filled = 0;
  const Table<DeviceId, double> used = resident_memory(problem, placement);
  for (const DeviceId device : problem.devices()) {
    const double memory = problem.space_memory(problem.space(device));
    if (used[device] > 0) filled = std::max(filled, memory > 0 ? used[device] / memory : factor);
  }
  return filled;
}

std::string memory_text(const Problem& problem, DeviceId device) {
  return fmt::format("{} has {} of memory", space_text(problem, device),
                     size_text(problem.space_memory(problem.space(device))));
}

std::string missing_link_text(const Problem& problem, DeviceId from, DeviceId to) {
  const bool alike = problem.device(from).space.valid() == problem.device(to).space.valid();
  return fmt::format(
      "there is no link from {} to {}", space_text(problem, from),
      alike ? fmt::format("'{}'", problem.space_name(problem.space(to))) : space_text(problem, to));
}

std::string kinds_of(const Problem& problem, OpId op) {
  std::vector<std::string> names;
  const auto& kinds = problem.draft().cluster.kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (problem.op(op).time[i] < kUnsupported) names.push_back(kinds[i].name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<Constraint> constraints_of(const Problem& problem) {
  std::vector<Constraint> constraints;
  const Rules& rules = problem.rules();
  const ObjectiveRecord& record = record_of(problem.objective());
  if (record.form == PlanForm::calls) {
    constraints.push_back({ConstraintKind::calls});
  } else if (asks_contiguity(problem.objective(), rules)) {
    constraints.push_back({ConstraintKind::contiguity});
  }
  if (record.holds_tensors && rules.memory == MemoryModel::peak) {
    constraints.push_back({ConstraintKind::peak_memory});
  }
  add_missing_links(problem, constraints);
  for (const OpId op : problem.ops()) {
    if (confined(problem, op)) constraints.push_back({ConstraintKind::support, op.index()});
  }
  for (std::size_t i = 0; i < problem.draft().colocated.size(); ++i) {
    if (problem.draft().colocated[i].size() > 1) {
      constraints.push_back({ConstraintKind::colocation, i});
    }
  }
  for (const OpId op : problem.ops()) {
    if (problem.op(op).pinned_to.valid()) {
      constraints.push_back({ConstraintKind::pin, op.index()});
    }
  }
  for (const DeviceId device : first_devices_of_spaces(problem)) {
    if (problem.space_memory(problem.space(device)) < kInfinity) {
      constraints.push_back({ConstraintKind::memory, device.index()});
    }
  }
  return constraints;
}

std::string text_of(const Problem& problem, const Constraint& constraint) {
  const auto device = [&](std::size_t index) { return problem.device(DeviceId{index}).name; };
  switch (constraint.kind) {
    case ConstraintKind::memory:
      return memory_text(problem, DeviceId{constraint.index});
    case ConstraintKind::pin: {
      const Op& op = problem.op(OpId{constraint.index});
      return fmt::format("op '{}' is pinned to device '{}'", op.name, device(op.pinned_to.index()));
    }
    case ConstraintKind::colocation:
      return fmt::format("ops {} must share a device",
                         names_of(problem, problem.draft().colocated[constraint.index]));
    case ConstraintKind::support:
      return fmt::format("op '{}' runs only on {}", problem.op(OpId{constraint.index}).name,
                         kinds_of(problem, OpId{constraint.index}));
    case ConstraintKind::missing_link:
      return missing_link_text(problem, DeviceId{constraint.index}, DeviceId{constraint.other});
    case ConstraintKind::contiguity:
      return fmt::format("stages must be contiguous ({})", name_of(problem.rules().contiguity));
    case ConstraintKind::calls:
      return fmt::format("an accelerator may be called {} time{}", problem.rules().calls_per_device,
                         problem.rules().calls_per_device == 1 ? "" : "s");
    case ConstraintKind::peak_memory:
      return "tensors must fit into memory beside the weights";
  }
  return "";
}

ProblemDraft with_only(const Problem& problem, std::span<const Constraint> kept) {
  ProblemDraft draft = problem.draft();
  for (const Constraint& constraint : constraints_of(problem)) {
    if (std::find(kept.begin(), kept.end(), constraint) == kept.end()) drop(draft, constraint);
  }
  std::erase_if(draft.colocated, [](const std::vector<OpId>& ops) { return ops.empty(); });
  return draft;
}

FeasibilityOracle::FeasibilityOracle(const Registry& registry, Budget budget)
    : registry_(registry), control_("explain", budget) {}

Verdict FeasibilityOracle::ask(const ProblemDraft& draft) {
  const Problem problem(draft);
  if (proof_of_infeasibility(problem)) return Verdict::infeasible;
  const double seconds = std::max(0.0, control_.remaining()) * kShareOfTime;
  Control control = control_.part("packing", seconds);
  const Packing packing = pack(problem, PackingCosts(problem), control);
  if (packing.proved_infeasible) return Verdict::infeasible;
  if (packing.placement) {
    const auto plan = plan_of_placement(problem, *packing.placement);
    if (plan && verify(problem, *plan).empty()) {
      placement_ = *packing.placement;
      return Verdict::feasible;
    }
  }
  return ask_planner(problem, seconds);
}

Verdict FeasibilityOracle::ask_planner(const Problem& problem, double seconds) {
  PlanRequest request;
  request.budget = control_.budget();
  request.budget.seconds = std::max(seconds, 0.02);
  const PlanOutcome outcome = make_plan(problem, registry_, request, control_.interruption());
  if (outcome.answer.plan) {
    placement_ = outcome.answer.plan->placement;
    return Verdict::feasible;
  }
  return outcome.answer.proved_infeasible ? Verdict::infeasible : Verdict::unknown;
}

Conflict find_conflict(const Problem& problem, FeasibilityOracle& oracle) {
  Conflict conflict;
  conflict.verdict = oracle.ask(problem.draft());
  if (conflict.verdict != Verdict::infeasible) return conflict;
  std::vector<Constraint> constraints = constraints_of(problem);
  // Without the rules on the shape of a plan a packing is the whole answer, which is far easier.
  std::vector<Constraint> placement_only = constraints;
  std::erase_if(placement_only, [](const Constraint& c) { return is_rule(c.kind); });
  if (placement_only.size() < constraints.size() &&
      oracle.ask(with_only(problem, placement_only)) == Verdict::infeasible) {
    constraints = std::move(placement_only);
  }
  Search search(problem, oracle);
  conflict.members = search.run(constraints, false);
  conflict.minimal = search.always_knew();
  return conflict;
}

std::optional<LeastMemory> least_memory(const Problem& problem, FeasibilityOracle& oracle) {
  constexpr double kMost = 1e12;
  constexpr double kPrecision = 1e-3;
  double not_enough = 0;
  double enough = 0;
  const auto ask = [&](double factor) {
    const Verdict verdict = oracle.ask(with_memory(problem.draft(), factor));
    if (verdict == Verdict::infeasible) not_enough = factor;
    if (verdict == Verdict::feasible) {
      enough = std::min(factor, factor_filled(problem, oracle.placement(), factor));
    }
    return verdict == Verdict::feasible;
  };
  double factor = 1;
  while (!ask(factor)) {
    factor *= 2;
    if (factor > kMost) return std::nullopt;
  }
  double tried = not_enough;  // known or, where the oracle did not know, assumed to be too little
  while (enough - tried > kPrecision * enough) {
    const double middle = (tried + enough) / 2;
    if (!ask(middle)) tried = middle;
  }
  LeastMemory least{.factor = enough, .not_enough = not_enough};
  for (const DeviceId device : first_devices_of_spaces(problem)) {
    const SpaceId space = problem.space(device);
    least.spaces.push_back({problem.space_name(space), problem.space_memory(space),
                            problem.space_memory(space) * enough});
  }
  return least;
}

}  // namespace placewright
