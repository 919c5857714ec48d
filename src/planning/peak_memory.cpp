#include "planning/peak_memory.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"
#include "evaluate/serial_schedule.h"
#include "evaluate/simulate.h"
#include "planning/feasibility.h"
#include "planning/sizes.h"
#include "problem/memory_spaces.h"

namespace placewright {
namespace {

constexpr int kTightenings = 4;

class PeakSearch {
 public:
  PeakSearch(const Problem& problem, const PlannerEntry& entry, const Settings& settings,
             Control& control)
      : problem_(problem), entry_(entry), settings_(settings), control_(control) {
    for (const SpaceId space : problem.spaces()) limits_.push_back(problem.space_memory(space));
  }

  Answer run() {
    // Half of the time is for the case that the first plan holds too much.
    Control first = control_.part(entry_.name, control_.remaining() / 2);
    first.start = control_.start;
    Answer answer = entry_.plan(problem_, settings_, first);
    if (!answer.plan) return answer;
    accept(*answer.plan);
    for (int i = 0; i < kTightenings && !accepted_; ++i) {
      const std::optional<Plan> next = with_less_memory();
      if (!next) break;
      accept(*next);
    }
    if (!accepted_) {
      if (const std::optional<Plan> next = with_heavier_ops()) accept(*next);
    }
    if (!accepted_) run_one_at_a_time();
    answer.plan = std::move(accepted_);
    if (!answer.plan) answer.reason = excess_;
    return answer;
  }

 private:
  // Remembers why a plan is not within memory, and what it would take.
  void accept(const Plan& plan) {
    const Simulation simulation = simulate(problem_, plan);
    const auto worst = device_over_peak(problem_, simulation);
    if (!worst) {
      accepted_ = plan;
      return;
    }
    const double memory = problem_.space_memory(problem_.space(*worst));
    if (excess_.empty()) {
      excess_ =
          fmt::format("no plan was found within peak memory: {} would hold {} at once and has {}",
                      space_text(problem_, *worst), size_text(simulation.devices[*worst].peak),
                      size_text(memory));
    }
    for (const DeviceId device : problem_.devices()) {
      const DeviceSummary& summary = simulation.devices[device];
      const SpaceId space = problem_.space(device);
      const double excess = summary.peak - problem_.space_memory(space);
      if (excess <= 0) continue;
      double& limit = limits_[space];
      limit = std::max(0.0, std::min(limit, summary.resident) - excess);
    }
    placements_.push_back(plan.placement);
  }

  std::optional<Plan> with_less_memory() {
    ProblemDraft draft = problem_.draft();
    for (const DeviceId device : problem_.devices()) {
      stated_memory(draft.cluster, device) = limits_[problem_.space(device)];
    }
    return stricter(std::move(draft));
  }

  // Tensors as if they were weights of the op that makes them.
  std::optional<Plan> with_heavier_ops() {
    ProblemDraft draft = problem_.draft();
    for (const Tensor& tensor : draft.tensors) {
      draft.ops[tensor.producer.index()].memory += tensor.bytes;
    }
    return stricter(std::move(draft));
  }

  std::optional<Plan> stricter(ProblemDraft draft) {
    if (control_.should_stop()) return std::nullopt;
    const Problem strict(std::move(draft));
    if (proof_of_infeasibility(strict)) return std::nullopt;
    Control part = control_.part(entry_.name, control_.remaining() / 2);
    return entry_.plan(strict, settings_, part).plan;
  }

  // The last placements are those made for the strictest problems.
  void run_one_at_a_time() {
    if (!is_schedule(problem_.objective())) return;
    for (auto placement = placements_.rbegin(); placement != placements_.rend(); ++placement) {
      const Plan serial = serial_plan(problem_, *placement);
      if (device_over_peak(problem_, simulate(problem_, serial))) continue;
      accepted_ = serial;
      // The same order without waiting, where that still fits.
      Plan eager =
          schedule_plan(problem_, *placement, retime(problem_, *placement, *serial.schedule));
      if (eager.value < serial.value && !device_over_peak(problem_, simulate(problem_, eager))) {
        accepted_ = std::move(eager);
      }
      return;
    }
  }

  const Problem& problem_;
  const PlannerEntry& entry_;
  const Settings& settings_;
  Control& control_;
  Table<SpaceId, double> limits_;
  std::vector<Placement> placements_;
  std::optional<Plan> accepted_;
  std::string excess_;
};

}  // namespace

Answer plan_within_memory(const Problem& problem, const PlannerEntry& entry,
                          const Settings& settings, Control& control) {
  if (problem.rules().memory == MemoryModel::resident || entry.effort == Effort::portfolio ||
      !record_of(problem.objective()).holds_tensors) {
    return entry.plan(problem, settings, control);
  }
  return PeakSearch(problem, entry, settings, control).run();
}

std::optional<Problem> without_peak_limits(const Problem& problem) {
  if (problem.rules().memory != MemoryModel::peak) return std::nullopt;
  const bool pipeline = problem.objective() == Objective::throughput;
  const double samples = pipeline ? most_samples_in_flight(problem) : 1;
  double most = memory_needed(problem);
  for (const TensorId tensor : problem.tensors()) most += samples * problem.tensor(tensor).bytes;
  for (const DeviceId device : problem.devices()) {
    if (!within_memory(most, problem.space_memory(problem.space(device)))) return std::nullopt;
  }
  ProblemDraft draft = problem.draft();
  draft.rules.memory = MemoryModel::resident;
  return Problem(std::move(draft));
}

}  // namespace placewright
