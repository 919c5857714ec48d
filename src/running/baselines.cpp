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

namespace placewright {
namespace {

// The whole model on a target, compiled when it is first measured.
class Setting {
 public:
  Setting(std::string name, const NeuralModel& model, Target target, int streams,
          bool pinned = false)
      : name_(std::move(name)),
        model_(model),
        target_(std::move(target)),
        streams_(streams),
        pinned_(pinned) {}

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
    released_ = true;
    requests_.clear();
    inputs_.clear();
    part_.reset();
  }

  [[nodiscard]] bool released() const { return released_; }
  [[nodiscard]] Baseline baseline() const {
    return {name_, over_turns(latencies_), over_turns(per_sample_)};
  }

 private:
  void compile(const RunOptions& options) {
    part_ = model_.compile_whole({.device = target_.device,
                                  .threads = target_.threads(),
                                  .streams = streams_,
                                  .pinned = pinned_});
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
      for (int i = 0; i < options.warm_up + options.repeat && !workers.stopped(); ++i) {
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
    for (int sample = 0; sample < samples; ++sample) {
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

    // Over stretches of about a tenth, so that a single slow sample does not count for all, in which
    // every stream has as many samples: streams that began together also end together.
    std::vector<double> per_sample;
    const std::size_t block =
        requests_.size() * std::max<std::size_t>(1, finished.size() / (10 * requests_.size()));
    for (std::size_t i = block; i < finished.size(); i += block) {
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
  Target target_;
  int streams_;
  bool pinned_;
  std::unique_ptr<CompiledPart> part_;
  Buffers inputs_;
  std::vector<std::unique_ptr<Request>> requests_;
  bool released_ = false;
  std::vector<Measured> latencies_;  // by turn
  std::vector<Measured> per_sample_;
};

// Streams of several cores each are for pipelines alone: a latency is better with all cores.
std::vector<Setting> settings_of(const Problem& problem, const NeuralModel& model, bool pipeline) {
  std::vector<Setting> settings;
  std::set<std::string> kinds;
  std::set<std::size_t> widths{1};
  std::set<int> cores;
  std::optional<Target> widest;  // on cores
  for (const DeviceId device : problem.devices()) {
    const Target target = target_named(problem.device(device).name);
    cores.insert(target.cores.begin(), target.cores.end());
    if (!target.cores.empty() && (!widest || target.threads() > widest->threads())) widest = target;
    if (pipeline && !target.cores.empty()) widths.insert(target.cores.size());
    if (!kinds.insert(kind_of(target)).second) continue;
    settings.emplace_back(fmt::format("{} alone", name_of(target)), model, target, 1);
  }
  if (cores.size() < 2 || problem.device_count() < 2) return settings;
  const Target all{widest->backend, widest->device, {cores.begin(), cores.end()}};
  if (widest->cores.size() < cores.size()) {
    settings.emplace_back(fmt::format("{} threads", cores.size()), model, all, 1);
  }
  for (const std::size_t width : widths) {
    const std::size_t streams = cores.size() / width;
    if (streams < 2) continue;
    settings.emplace_back(fmt::format("{} streams", streams), model, all,
                          static_cast<int>(streams));
  }
  // The backend chooses among all cores, so it must have all of them.
  if (cores.size() == allowed_cores().size()) {
    settings.emplace_back(
        fmt::format("{} {}, pinned", cores.size(), pipeline ? "streams" : "threads"), model, all,
        pipeline ? all.threads() : 1, true);
  }
  return settings;
}

}  // namespace

ComparedRun run_beside_baselines(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const RunOptions& options) {
  RunOptions plan_options = one_turn_of(options, plan);
  int turn = 0;
  plan_options.progress = [&](double done) {
    if (options.progress) options.progress((turn + done) / kTurns);
  };
  // A setting of streams has as many for each of them.
  const RunOptions turn_options = plan.schedule ? plan_options : one_turn_of(options, Plan{});
  LoadedPlan loaded(problem, plan, models, plan_options);
  std::vector<Setting> settings = settings_of(problem, *models.front(), !plan.schedule);
  std::vector<RunResult> results;
  double fastest = kInfinity;
  const auto far_slower = [&](const Setting& setting) {
    const Baseline baseline = setting.baseline();
    const double time = plan.schedule ? baseline.latency.median : baseline.per_sample.median;
    fastest = std::min(fastest, time);
    return time > kFarSlower * fastest;
  };
  const auto interrupted = [&] { return !results.empty() && results.back().interrupted; };
  for (; turn < kTurns && !interrupted(); ++turn) {
    for (const std::size_t i : order_in_turn(turn, settings.size() + 1)) {
      if (interrupted()) break;
      if (i == 0) {
        results.push_back(loaded.measure(turn == 0));
      } else if (Setting& setting = settings[i - 1]; !setting.released()) {
        setting.take_turn(turn_options);
        if (far_slower(setting)) setting.release();
      }
    }
  }
  ComparedRun run{over_turns(std::move(results)), {}};
  if (run.result.interrupted) return run;
  for (const Setting& setting : settings) run.baselines.push_back(setting.baseline());
  return run;
}

}  // namespace placewright
