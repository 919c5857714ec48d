#include "running/baselines.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "backends/target_devices.h"
#include "machine/targets.h"
#include "running/turns.h"
#include "running/uncut_setting.h"
#include "running/unplanned_models.h"

namespace placewright {
namespace {

// Nullopt if the plan is none.
std::optional<Configuration> configuration_of(const Problem& problem, const Plan& plan) {
  const auto target_of = [&](DeviceId device) { return target_named(problem.device(device).name); };
  if (!plan.schedule && plan.stages.size() != 1) return std::nullopt;
  if (plan.schedule || plan.stages.front().devices.size() == 1) {
    const DeviceId first = plan.placement[OpId{0}];
    const bool whole =
        std::ranges::all_of(plan.placement, [&](DeviceId device) { return device == first; });
    return whole ? std::optional(Configuration{target_of(first)}) : std::nullopt;
  }
  std::vector<Target> replicas;
  for (const DeviceId device : plan.stages.front().devices) replicas.push_back(target_of(device));
  std::optional<Target> all = joined(replicas);
  if (!all) return std::nullopt;
  return Configuration{std::move(*all), static_cast<int>(replicas.size())};
}

// Streams of several cores each are for pipelines alone: a latency is better with all cores.
std::vector<UncutSetting> settings_of(const Problem& problem, const NeuralModel& model,
                                      bool pipeline) {
  std::vector<UncutSetting> settings = hint_settings(problem, model);
  std::vector<Target> targets;
  std::set<std::string> kinds;
  for (const DeviceId device : problem.devices()) {
    if (!runs_every_op(problem, device)) continue;
    Target target = target_named(problem.device(device).name);
    target.pinned = false;
    targets.push_back(target);
    if (!kinds.insert(kind_of(target)).second) continue;
    settings.emplace_back(fmt::format("{} alone", name_of(target)), model, Configuration{target});
  }
  const Target all = all_cores_of(targets);
  if (all.cores.size() < 2 || targets.size() < 2) return settings;
  const auto add = [&](std::size_t streams, bool pinned) {
    Configuration configuration{all, static_cast<int>(streams)};
    configuration.target.pinned = pinned;
    settings.emplace_back(
        fmt::format("{} {}{}", streams > 1 ? streams : all.cores.size(),
                    streams > 1 ? "streams" : "threads", pinned ? ", pinned" : ""),
        model, std::move(configuration));
  };
  std::set<std::size_t> widths{1, all.cores.size()};  // of a stream
  for (const Target& target : targets) {
    if (pipeline && !target.cores.empty()) widths.insert(target.cores.size());
  }
  for (const std::size_t width : widths) {
    const std::size_t streams = all.cores.size() / width;
    if (streams > 1 || !kinds.contains(kind_of(all))) add(streams, false);
    if (all.cores == allowed_cores() && (pipeline || streams == 1)) add(streams, true);
  }
  return settings;
}

// All cores of the devices, and of those that are no cores one of each kind; none that cannot run
// every op.
std::vector<Target> machines_of(const Problem& problem) {
  std::vector<Target> machines;
  std::vector<Target> targets;
  std::set<std::string> kinds;
  for (const DeviceId device : problem.devices()) {
    if (!runs_every_op(problem, device)) continue;
    targets.push_back(target_named(problem.device(device).name));
    const bool cores = !targets.back().cores.empty();
    if (!cores && kinds.insert(kind_of(targets.back())).second) machines.push_back(targets.back());
  }
  Target all = all_cores_of(targets);
  all.pinned = false;
  if (!all.cores.empty()) machines.insert(machines.begin(), std::move(all));
  return machines;
}

// The time of a sample: of several models, which come one sample after the other, the latency.
Baseline baseline_of(const Problem& problem, const UnplannedModels::Policy& policy) {
  const Measured latency = over_turns(policy.latencies);
  Baseline baseline{policy.name, latency, latency};
  if (problem.objective() == Objective::total_completion) {
    baseline.total_completion = over_turns(policy.values);
  }
  return baseline;
}

// Of a policy that the plan is.
Baseline baseline_of(const Problem& problem, const UnplannedModels::Policy& policy,
                     const RunResult& plan) {
  const Measured latency = std::ranges::max(plan.completions, {}, &Measured::median);
  Baseline baseline{policy.name, latency, latency, true};
  if (problem.objective() == Objective::total_completion) baseline.total_completion = plan.value;
  return baseline;
}

// What a plan is compared with. `baseline` is given the plan's own measurement.
struct Rival {
  bool is_plan = false;
  Contender contender;
  std::function<Baseline(const RunResult& plan)> baseline;
};

// The settings and the options must outlive them.
std::vector<Rival> rivals_of(std::vector<UncutSetting>& settings, const RunOptions& options,
                             const Problem& problem, const Plan& plan) {
  const std::optional<Configuration> own = configuration_of(problem, plan);
  std::vector<Rival> rivals;
  for (UncutSetting& setting : settings) {
    const bool is_plan = own && own->equals(setting.configuration());
    const bool pipeline = !plan.schedule;
    rivals.push_back({is_plan, setting.contender(options, !plan.schedule),
                      [&setting, is_plan, pipeline](const RunResult& result) {
                        return is_plan ? setting.baseline_of(result) : setting.baseline(pipeline);
                      }});
  }
  return rivals;
}

// The same of several models.
std::vector<Rival> rivals_of(UnplannedModels& models, const RunOptions& options,
                             const Problem& problem, const Plan& plan) {
  std::vector<Rival> rivals;
  for (UnplannedModels::Policy& policy : models.policies()) {
    const bool is_plan = models.is_policy(plan, policy);
    rivals.push_back({is_plan,
                      {[&](int) { return models.take_turn(policy, options); }, [] {}},
                      [&problem, &policy, is_plan](const RunResult& result) {
                        return is_plan ? baseline_of(problem, policy, result)
                                       : baseline_of(problem, policy);
                      }});
  }
  return rivals;
}

}  // namespace

ComparedRun run_beside_baselines(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const RunOptions& options) {
  RunOptions plan_options = one_turn_of(options, plan);
  int turn = 0;
  plan_options.progress = [&](double done) {
    if (options.progress) options.progress(std::min(1.0, (turn + done) / kTurns));
  };
  // A setting of streams has as many for each of them.
  const RunOptions turn_options = plan.schedule ? plan_options : one_turn_of(options, Plan{});
  LoadedPlan loaded(problem, plan, models, plan_options);
  std::vector<UncutSetting> settings;
  std::optional<UnplannedModels> several;
  std::vector<Rival> rivals;
  if (models.size() == 1) {
    settings = settings_of(problem, *models.front(), !plan.schedule);
    rivals = rivals_of(settings, turn_options, problem, plan);
  } else if (const std::vector<Target> machines = machines_of(problem); !machines.empty()) {
    several.emplace(problem, models, machines, turn_options);
    rivals = rivals_of(*several, turn_options, problem, plan);
  }
  std::vector<RunResult> results;
  const auto measure = [&](int number) {
    turn = number;
    return take_turn(loaded, results);
  };
  std::vector<Contender> contenders = {{measure, {}}};
  for (const Rival& rival : rivals) {
    if (!rival.is_plan) contenders.push_back(rival.contender);
  }
  const bool finished = compare_in_turns(contenders, 0);
  ComparedRun run;
  for (const RunResult& result : results) run.turns.push_back(result.value.median);
  run.result = over_turns(std::move(results));
  run.result.interrupted = !finished;
  if (run.result.interrupted) return run;
  for (const Rival& rival : rivals) run.baselines.push_back(rival.baseline(run.result));
  return run;
}

}  // namespace placewright
