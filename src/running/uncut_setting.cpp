#include "running/uncut_setting.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/target_devices.h"
#include "machine/clock.h"
#include "machine/core_check.h"
#include "machine/workers.h"

namespace placewright {
namespace {

bool is_short(Clock::time_point begin, const RunOptions& options) {
  return milliseconds(Clock::now() - begin) < 1000 * options.at_least;
}

}  // namespace

void UncutSetting::take_turn(const RunOptions& options) {
  if (requests_.empty()) compile(options);
  const CoreCheck cores(configuration_.target.cores);
  if (at_once() > 1) {
    run_streams(options);
  } else {
    latencies_.push_back(latency(options));
    per_sample_.push_back(latencies_.back());
  }
  if (!cores.disturbed()) return;
  latencies_.back().reject();
  per_sample_.back().reject();
}

void UncutSetting::release() {
  requests_.clear();
  inputs_.clear();
  part_.reset();
}

Baseline UncutSetting::baseline(bool pipeline) const {
  Baseline baseline{name_, over_turns(latencies_), over_turns(per_sample_)};
  for (const Measured& turn : pipeline ? per_sample_ : latencies_) {
    baseline.turns.push_back(turn.median);
  }
  return baseline;
}

Baseline UncutSetting::baseline_of(const RunResult& plan) const {
  const bool streams = configuration_.streams > 1;
  const Measured& latency = streams ? plan.segment_times.front() : plan.value;
  return {name_, latency, plan.value, true};
}

Contender UncutSetting::contender(const RunOptions& options, bool pipeline) {
  return {.take_turn = [this, &options, pipeline](int) -> std::optional<double> {
            take_turn(options);
            if (options.stop != nullptr && options.stop->load()) return std::nullopt;
            return (pipeline ? per_sample_ : latencies_).back().median;
          },
          .release = [this] { release(); }};
}

void UncutSetting::compile(const RunOptions& options) {
  CompileOptions compiled = compile_options(configuration_.target);
  compiled.streams = configuration_.streams;
  compiled.hint = configuration_.hint;
  part_ = model_.compile_whole(compiled);
  inputs_ = model_inputs(model_.graph(), options.given_to(0), options.seed, configuration_.target);
  const std::size_t count = configuration_.hint == Hint::throughput
                                ? part_->advised_requests()
                                : static_cast<std::size_t>(configuration_.streams);
  for (std::size_t i = 0; i < count; ++i) requests_.push_back(request_with(*part_, inputs_));
}

// Inferences one after the other, in a thread bound to the cores.
Measured UncutSetting::latency(const RunOptions& options) {
  std::vector<double> kept;
  std::vector<double> rejected;
  bool watched = false;
  Workers workers({configuration_.target}, options.stop);
  workers.run([&](std::size_t) {
    const std::unique_ptr<DisturbanceProbe> probe = probe_of(configuration_.target);
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
void UncutSetting::run_streams(const RunOptions& options) {
  std::vector<double> latencies;
  std::vector<double> finished;
  std::vector<Clock::time_point> started(requests_.size());
  const Clock::time_point origin = Clock::now();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    started[i] = Clock::now();
    requests_[i]->start();
  }
  const int streams = static_cast<int>(at_once());
  const int samples = (options.warm_up + options.repeat) * streams;
  for (int sample = 0; sample < samples || is_short(origin, options); ++sample) {
    if (options.stop != nullptr && options.stop->load()) break;
    const std::size_t slot = static_cast<std::size_t>(sample) % requests_.size();
    requests_[slot]->wait();
    if (sample >= options.warm_up * streams) {
      latencies.push_back(milliseconds(Clock::now() - started[slot]));
      finished.push_back(milliseconds(Clock::now() - origin));
    }
    started[slot] = Clock::now();
    requests_[slot]->start();
  }
  for (const auto& request : requests_) request->wait();

  // Over stretches of about a tenth, so that a single slow sample does not count for all, of whole
  // rounds of the streams, from the last one's end to the last one's end: streams that began
  // together also end together, and the first waits for nobody.
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

std::vector<UncutSetting> hint_settings(const Problem& problem, const NeuralModel& model) {
  std::vector<Target> targets;
  for (const DeviceId device : problem.devices()) {
    if (runs_every_op(problem, device))
      targets.push_back(target_named(problem.device(device).name));
  }
  Target all = all_cores_of(targets);
  if (all.cores.empty() || all.cores != allowed_cores()) return {};
  all.pinned = false;
  std::vector<UncutSetting> settings;
  settings.emplace_back("latency hint", model, Configuration{.target = all, .hint = Hint::latency});
  settings.emplace_back("throughput hint", model,
                        Configuration{.target = all, .hint = Hint::throughput});
  return settings;
}

}  // namespace placewright
