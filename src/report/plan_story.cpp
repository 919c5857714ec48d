#include "report/plan_story.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/limits.h"
#include "analysis/more_of.h"
#include "analysis/stage_turns.h"
#include "formats/plan_rows.h"
#include "formats/resource_text.h"
#include "problem/cost_source.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

constexpr double kStep = 0.1;            // how much more of something
constexpr double kWorthSaying = 0.005;   // smaller shares and gains are left out
constexpr double kNearTheBound = 0.05;   // a gap that says that the plan cannot become much better
constexpr std::size_t kMostAssets = 12;  // each takes an evaluation

std::string time_text(const Problem& problem, double time) {
  return problem.unit() == TimeUnit::none ? fmt::format("{:.4g} as stated", time)
                                          : fmt::format("{:.4g} {}", time, name_of(problem.unit()));
}

std::string percent(double share) {
  return share < 0.01 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

struct Part {
  std::string name;
  double time = 0;
};

// How long a step computes; the rest of a call moves tensors.
double compute_of(const Problem& problem, const Plan& plan, const PathStep& step) {
  if (step.kind == StepKind::op) return step.end - step.start;
  if (step.kind == StepKind::transfer) return 0;
  double time = 0;
  const Call& call = plan.calls[step.index];
  for (const OpId op : call.ops) time += problem.time(op, call.device);
  return std::min(time, step.end - step.start);
}

// Time of the path by what takes it, the longest first.
std::vector<Part> parts_of(const Problem& problem, const Plan& plan, const CriticalPath& path) {
  Table<DeviceId, double> compute(problem.device_count(), 0);
  Part transfers{"transfers"};
  for (const PathStep& step : path.steps) {
    const double computing = compute_of(problem, plan, step);
    transfers.time += step.end - step.start - computing;
    if (step.kind == StepKind::op) compute[plan.placement[OpId{step.index}]] += computing;
    if (step.kind == StepKind::call) compute[plan.calls[step.index].device] += computing;
  }
  std::vector<Part> parts = {std::move(transfers), {"waiting", path.idle}};
  for (const DeviceId device : problem.devices()) {
    parts.push_back({fmt::format("compute on {}", problem.device(device).name), compute[device]});
  }
  std::ranges::stable_sort(parts, std::greater<>{}, &Part::time);
  return parts;
}

// Whose path it is, where each model has one.
std::string owner_of(const Problem& problem, const CriticalPath& path) {
  const PathStep& last = path.steps.back();
  if (problem.model_count() < 2 || last.kind != StepKind::op) return "";
  return fmt::format(" of {}", problem.model(problem.op(OpId{last.index}).model).name);
}

std::string path_limit(const Problem& problem, const Plan& plan) {
  const CriticalPath path = critical_path(problem, plan);
  const double whole = path.ops + path.transfers + path.idle;
  if (whole <= 0) return "Nothing in this plan takes time.";
  const std::vector<Part> parts = parts_of(problem, plan, path);
  std::vector<std::string> others;
  for (std::size_t i = 1; i < parts.size() && others.size() < 3; ++i) {
    if (parts[i].time < kWorthSaying * whole) break;
    others.push_back(fmt::format("{} {}", parts[i].name, percent(parts[i].time / whole)));
  }
  return fmt::format("Limited by {}: {} of the critical path{}, {}{}.", parts.front().name,
                     percent(parts.front().time / whole), owner_of(problem, path),
                     time_text(problem, whole),
                     others.empty() ? "" : fmt::format(" ({})", fmt::join(others, ", ")));
}

// "1, 3 and 4"
std::string numbers_text(const std::vector<std::size_t>& stages) {
  std::vector<std::size_t> numbers;
  for (const std::size_t stage : stages) numbers.push_back(stage + 1);
  const std::size_t last = numbers.back();
  numbers.pop_back();
  return fmt::format("{} and {}", fmt::join(numbers, ", "), last);
}

std::string turns_limit(const Problem& problem, const Plan& plan, const TakingTurns& turns) {
  return fmt::format("Limited by stages {} of {}, which take turns on {}: {} of a period of {}.",
                     numbers_text(turns.stages), plan.stages.size(),
                     resources_text(problem, turns.resources), time_text(problem, turns.time),
                     time_text(problem, plan.value));
}

std::string stage_limit(const Problem& problem, const Plan& plan) {
  const TakingTurns turns = limiting_turns(problem, plan);
  if (!turns.stages.empty()) return turns_limit(problem, plan, turns);
  std::string text;
  const auto fullest = fullest_stages(problem, plan);
  for (const FullestStage& most : fullest) {
    const Stage& stage = plan.stages[most.stage];
    text += fmt::format("{}Limited by stage {} of {}{}, on {}: compute {}, in {}, out {}.",
                        text.empty() ? "" : " ", most.stage + 1, plan.stages.size(),
                        fullest.size() < 2 ? ""
                        : most.backward    ? " in the backward pass"
                                           : " in the forward pass",
                        fmt::join(device_names(problem, stage.devices), ", "),
                        time_text(problem, most.work.compute), time_text(problem, most.work.in),
                        time_text(problem, most.work.out));
  }
  return text;
}

std::string bound_text(const Problem& problem, const Plan& plan, const Certificate& certificate) {
  const double left = gap(plan.value, certificate.lower_bound);
  if (left > kNearTheBound) return "";
  const bool estimated = cost_source(problem.draft()) == CostSource::estimated;
  const char* provided = estimated ? ", if the estimates hold" : "";
  if (left <= kOptimalGap) return fmt::format(" No plan for these devices is better{}.", provided);
  return fmt::format(" No plan for these devices can be more than {} better{}.", percent(left),
                     provided);
}

std::string help_text(const Problem& problem, const Plan& plan) {
  const auto gains =
      gains_of_same_plan(problem, plan, scarce_assets(problem, plan, kMostAssets), kStep);
  if (gains.empty()) return "";
  if (gains.front().gain < kWorthSaying * plan.value) {
    return "10 % more speed of any one of the busiest devices, or bandwidth of any one of the "
           "busiest "
           "links, would make this plan less than 0.5 % better.";
  }
  const SamePlanGain& most = gains.front();
  return fmt::format("What would help most: with 10 % more {} this plan takes {} ({} less).",
                     text_of(problem, most.asset), time_text(problem, most.value),
                     percent(most.gain / plan.value));
}

}  // namespace

PlanStory plan_story(const Problem& problem, const Plan& plan, const Certificate& certificate) {
  const bool pipeline = problem.objective() == Objective::throughput;
  return {(pipeline ? stage_limit(problem, plan) : path_limit(problem, plan)) +
              bound_text(problem, plan, certificate),
          help_text(problem, plan)};
}

}  // namespace placewright
