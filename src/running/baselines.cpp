#include "running/baselines.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/targets.h"
#include "machine/workers.h"
#include "running/turns.h"
#include "running/unplanned_models.h"

namespace placewright {
namespace {

// What the backend is told about a model that is not cut.
struct Configuration {
  Target target;    // with the cores of all streams
  int streams = 1;  // inferences at once

  // Which cores of equally many does not matter.
  [[nodiscard]] bool equals(const Configuration& other) const {
    return kind_of(target) == kind_of(other.target) && streams == other.streams;
  }
};

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

// The whole model in a configuration, compiled when it is first measured.
class Setting {
 public:
  Setting(std::string name, const NeuralModel& model, Configuration configuration)
      : name_(std::move(name)),
        model_(model),
        target_(std::move(configuration.target)),
        streams_(configuration.streams) {}

  void take_turn(const RunOptions& options) {
    if (requests_.empty()) compile(options);
    if (streams_ > 1) {
      run_streams(options);
    } else {
      latencies_.push_back(latency(options));
      per_sample_.push_back(latencies_.back());
    }
  }

  void release() {
    requests_.clear();
    inputs_.clear();
    part_.reset();
  }

  [[nodiscard]] Configuration configuration() const { return {target_, streams_}; }
  [[nodiscard]] Baseline baseline() const {
    return {name_, over_turns(latencies_), over_turns(per_sample_)};
  }
  // Of the last turn: what is compared with a pipeline, or with a schedule.
  [[nodiscard]] double last_time(bool pipeline) const {
    return (pipeline ? per_sample_ : latencies_).back().median;
  }
  // Of a setting that the plan is.
  [[nodiscard]] Baseline baseline_of(const RunResult& plan) const {
    const Measured& latency = streams_ > 1 ? plan.segment_times.front() : plan.value;
    return {name_, latency, plan.value, true};
  }

 private:
  [[nodiscard]] static bool is_short(Clock::time_point begin, const RunOptions& options) {
    return milliseconds(Clock::now() - begin) < 1000 * options.at_least;
  }

  void compile(const RunOptions& options) {
    CompileOptions compiled = compile_options(target_);
    compiled.streams = streams_;
    part_ = model_.compile_whole(compiled);
    inputs_ = model_inputs(model_.graph(), options.given_to(0), options.seed, target_);
    for (int i = 0; i < streams_; ++i) requests_.push_back(request_with(*part_, inputs_));
  }

  // Inferences one after the other, in a thread bound to the cores.
  Measured latency(const RunOptions& options) {
    std::vector<double> kept;
    std::vector<double> rejected;
    bool watched = false;
    Workers workers({target_}, options.stop);
    workers.run([&](std::size_t) {
      const std::unique_ptr<DisturbanceProbe> probe = probe_of(target_);
      watched = probe != nullptr;
      const Clock::time_point begin = Clock::now();
      const auto goes_on = [&](int runs) {
        return runs < options.warm_up + options.repeat || is_short(begin, options);
      };
      for (int i = 0; goes_on(i) && !workers.stopped(); ++i) {
        if (probe) probe->begin();
        const Clock::time_point start = Clock::now();
        requests_.front()->run();
        const double length = milliseconds(Clock::now() - start);
        const double lost = probe ? probe->lost() : 0;
        if (i < options.warm_up) continue;
        (lost > kDisturbed * length ? rejected : kept).push_back(length);
      }
    });
    Measured latency = measured(std::move(kept), rejected);
    latency.watched = watched;
    return latency;
  }

  // As many inferences at once as there are streams; the backend's own threads do the work.
  void run_streams(const RunOptions& options) {
    std::vector<double> latencies;
    std::vector<double> finished;
    std::vector<Clock::time_point> started(requests_.size());
    const Clock::time_point origin = Clock::now();
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      started[i] = Clock::now();
      requests_[i]->start();
    }
    const int samples = (options.warm_up + options.repeat) * streams_;
    for (int sample = 0; sample < samples || is_short(origin, options); ++sample) {
      if (options.stop != nullptr && options.stop->load()) break;
      const std::size_t slot = static_cast<std::size_t>(sample) % requests_.size();
      requests_[slot]->wait();
      if (sample >= options.warm_up * streams_) {
        latencies.push_back(milliseconds(Clock::now() - started[slot]));
        finished.push_back(milliseconds(Clock::now() - origin));
      }
      started[slot] = Clock::now();
      requests_[slot]->start();
    }
    for (const auto& request : requests_) request->wait();

    // Over stretches of about a tenth, so that a single slow sample does not count for all, of whole rounds
    // of the streams, from the last one's end to the last one's end: streams that began together also end
    // together, and the first waits for nobody.
    std::vector<double> per_sample;
    const std::size_t block =
        requests_.size() * std::max<std::size_t>(1, finished.size() / (10 * requests_.size()));
    for (std::size_t i = 2 * block - 1; i < finished.size(); i += block) {
      per_sample.push_back((finished[i] - finished[i - block]) / static_cast<double>(block));
    }
    latencies_.push_back(measured(std::move(latencies), std::size_t{0}));
    per_sample_.push_back(measured(std::move(per_sample), std::size_t{0}));
    // The threads that work are not ours to watch.
    latencies_.back().watched = false;
    per_sample_.back().watched = false;
  }

  std::string name_;
  const NeuralModel& model_;
  Target target_;  // with the cores of all streams
  int streams_;
  std::unique_ptr<CompiledPart> part_;
  Buffers inputs_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Measured> latencies_;  // by turn
  std::vector<Measured> per_sample_;
};

// Both must outlive it.
Contender contender_of(Setting& setting, const RunOptions& options, bool pipeline) {
  return {.take_turn = [&setting, &options, pipeline](int) -> std::optional<double> {
            setting.take_turn(options);
            if (options.stop != nullptr && options.stop->load()) return std::nullopt;
            return setting.last_time(pipeline);
          },
          .release = [&setting] { setting.release(); }};
}

// All cores of the devices, as one set.
Target all_cores_of(const std::vector<Target>& targets) {
  Target all;
  std::set<int> cores;
  for (const Target& target : targets) {
    if (target.cores.empty()) continue;
    all = target;
    cores.insert(target.cores.begin(), target.cores.end());
  }
  all.cores.assign(cores.begin(), cores.end());
  return all;
}

bool runs_every_op(const Problem& problem, DeviceId device) {
  return std::ranges::all_of(problem.ops(),
                             [&](OpId op) { return problem.time(op, device) < kUnsupported; });
}

// Streams of several cores each are for pipelines alone: a latency is better with all cores.
std::vector<Setting> settings_of(const Problem& problem, const NeuralModel& model, bool pipeline) {
  std::vector<Setting> settings;
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

// All cores of the devices, and of those that are no cores one of each kind; none that cannot run every op.
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
std::vector<Rival> rivals_of(std::vector<Setting>& settings, const RunOptions& options,
                             const Problem& problem, const Plan& plan) {
  const std::optional<Configuration> own = configuration_of(problem, plan);
  std::vector<Rival> rivals;
  for (Setting& setting : settings) {
    const bool is_plan = own && own->equals(setting.configuration());
    rivals.push_back({is_plan, contender_of(setting, options, !plan.schedule),
                      [&setting, is_plan](const RunResult& result) {
                        return is_plan ? setting.baseline_of(result) : setting.baseline();
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
  std::vector<Setting> settings;
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
  ComparedRun run{over_turns(std::move(results)), {}};
  run.result.interrupted = !finished;
  if (run.result.interrupted) return run;
  for (const Rival& rival : rivals) run.baselines.push_back(rival.baseline(run.result));
  return run;
}

}  // namespace placewright
