#include "support/small_problem.h"

#include <algorithm>
#include <utility>

#include "support/brute_force.h"
#include "support/brute_force_calls.h"
#include "support/random_problem.h"

namespace placewright::testing {
namespace {

RandomProblemOptions small_options(Objective objective, RandomSource& random) {
  RandomProblemOptions options;
  options.objective = objective;
  const bool calls = objective == Objective::call_latency;
  options.interconnect =
      calls || random.chance(0.4) ? InterconnectKind::host : InterconnectKind::links;
  options.ops = random.between(2, kSmallProblem);
  options.devices = random.between(2, 4);
  if (objective == Objective::total_completion) options.models = random.between(1, 2);
  options.edge_probability = 0.15 + 0.6 * random.unit();
  options.congestion = random.chance(0.6);
  options.binding_memory = random.chance(0.25);
  options.unsupported = random.chance(0.25);
  options.pins = random.chance(0.15);
  options.colocation = random.chance(0.2);
  options.shared_weights = random.chance(0.2);
  options.resources = random.chance(0.25);
  options.spaces = random.chance(0.25);
  options.lanes = is_schedule(objective) && !options.resources && random.chance(0.25);
  options.overheads = random.chance(0.25);
  options.cuts = random.chance(0.2);
  options.training = objective == Objective::throughput && random.chance(0.35);
  options.missing_links = options.interconnect == InterconnectKind::links && random.chance(0.15);
  options.integer_times = random.chance(0.4);
  options.zero_times = random.chance(0.2);
  return options;
}

void draw_rules(ProblemDraft& draft, RandomSource& random) {
  if (random.chance(0.1)) draft.rules.memory = MemoryModel::peak;
  if (draft.objective == Objective::call_latency) {
    draft.rules.calls_per_device = static_cast<int>(random.between(1, 3));
  }
  if (draft.objective != Objective::throughput) return;
  draft.rules.contiguity = Contiguity{static_cast<int>(random.below(3))};
  draft.rules.transfers = TransferMode{static_cast<int>(random.below(3))};
  draft.rules.training = TrainingMode{static_cast<int>(random.below(2))};
  draft.rules.max_replicas = static_cast<int>(random.between(1, 3));
  draft.rules.replica_bandwidth = random.chance(0.5) ? 0 : 3.5;
}

}  // namespace

ProblemDraft small_draft(Objective objective, std::uint64_t number) {
  RandomSource random(number);
  RandomProblemOptions options = small_options(objective, random);
  const bool core_sets = objective != Objective::call_latency && random.chance(0.15);
  if (core_sets) options.ops = std::min<std::size_t>(options.ops, 4);
  ProblemDraft draft = core_sets ? core_set_draft(options, number) : random_draft(options, number);
  draw_rules(draft, random);
  return draft;
}

std::optional<Problem> small_problem(Objective objective, std::uint64_t number) {
  try {
    return Problem(small_draft(objective, number));
  } catch (const InvalidProblem&) {
    return std::nullopt;
  }
}

Enumerated enumerated(const Problem& problem) {
  if (problem.rules().memory == MemoryModel::peak) return {};
  const std::size_t ops = problem.op_count();
  const std::size_t devices = problem.device_count();
  switch (problem.objective()) {
    case Objective::latency:
    case Objective::total_completion:
      if (ops > 4 || devices > 3) return {};
      return {true, brute_force_value(problem)};
    case Objective::throughput:
      if (ops > 5 || devices > 3) return {};
      return {true, brute_force_value(problem)};
    case Objective::call_latency:
      if (ops > 4 || devices > 3) return {};
      return {true, brute_force_call_latency(problem)};
  }
  return {};
}

}  // namespace placewright::testing
