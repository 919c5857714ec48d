#include "running/execution.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <utility>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/core_check.h"
#include "machine/workers.h"
#include "problem/exclusion.h"
#include "problem/time_unit.h"
#include "running/run_log.h"
#include "running/samples_that_fit.h"

namespace placewright {
namespace {

// Which devices are at work, so that no two use the same cores: for pipelines, where the plan does
// not say who comes first.
class Claims {
 public:
  explicit Claims(const Problem& problem)
      : excluded_(excluded_devices(problem)), working_(problem.device_count(), 0) {}

  bool take(DeviceId device) {
    const std::lock_guard lock(mutex_);
    const bool free = std::ranges::none_of(excluded_[device],
                                           [&](DeviceId other) { return working_[other] != 0; });
    if (free) working_[device] = 1;
    return free;
  }
  void release(DeviceId device) {
    const std::lock_guard lock(mutex_);
    working_[device] = 0;
  }

 private:
  std::mutex mutex_;
  Table<DeviceId, std::vector<DeviceId>> excluded_;
  Table<DeviceId, char> working_;
};

class Execution {
 public:
  Execution(const Problem& problem, const Plan& plan,
            const std::vector<std::unique_ptr<NeuralModel>>& models, const RunOptions& options)
      : problem_(problem),
        models_(models),
        options_(options),
        streams_(!plan.schedule),
        unit_(milliseconds_in(problem.unit())),
        plan_(problem, plan, models, options.slots, options.seed),
        given_(options.inputs),
        done_(plan_.step_count()),
        claims_(problem),
        wakes_(plan_.step_count()) {
    for (auto& words : done_) words = std::vector<Word>(plan_.slots());
    for (const PlanWorker& worker : plan_.workers()) {
      for (const std::size_t step : worker.steps) {
        for (const std::size_t holder : plan_.holders(step)) {
          wakes_[holder].push_back(targets_.size());
        }
      }
      targets_.push_back(worker.target);
    }
    given_.resize(models.size());
    for (std::size_t slot = 0; slot < plan_.slots(); ++slot) set_inputs(slot);
  }

  RunResult run(bool compare = true);

  // The outputs of each sample, as many as there are slots at most.
  std::vector<std::vector<NamedArrays>> run(std::span<const std::vector<NamedArrays>> samples);
  [[nodiscard]] std::size_t slots() const { return plan_.slots(); }

 private:
  struct alignas(64) Word {
    std::atomic<std::uint64_t> samples{0};
    Word() = default;
    Word(const Word&) : Word() {}  // for the vector; never copied in use
  };

  // A worker at one of its devices: bound to it, and watching what it gives to others, as far as it
  // can tell.
  class Seat {
   public:
    Seat(const PreparedPlan& plan, const PlanWorker& worker) : plan_(plan), worker_(worker) {
      if (!worker.copies) take(worker.devices.front());
    }

    void take(DeviceId device) {
      if (worker_.copies || device == device_) return;
      device_ = device;
      if (worker_.devices.size() > 1) bind_this_thread(plan_.target(device).cores);
      auto& probe = probes_[device];
      if (!probe) probe = plan_.probe(worker_, device);
      probe_ = probe.get();
    }
    void begin() {
      if (probe_ != nullptr) probe_->begin();
    }
    [[nodiscard]] double lost() const { return probe_ != nullptr ? probe_->lost() : 0; }

   private:
    const PreparedPlan& plan_;
    const PlanWorker& worker_;
    DeviceId device_;
    std::map<DeviceId, std::unique_ptr<DisturbanceProbe>> probes_;
    DisturbanceProbe* probe_ = nullptr;
  };

  double run_step(std::size_t step, std::size_t sample, WorkerLog& log);
  [[nodiscard]] bool wait_for_cores(std::size_t worker, std::size_t step, std::size_t sample,
                                    Workers& workers) const;
  void follow_schedule(std::size_t worker, std::size_t samples, Workers& workers, WorkerLog& log);
  void follow_pipeline(std::size_t worker, std::size_t samples, Workers& workers, WorkerLog& log);
  void follow_streams(std::size_t samples, Workers& workers, WorkerLog& log);
  [[nodiscard]] bool wait_for_inputs(std::size_t worker, std::size_t step, std::size_t sample,
                                     Workers& workers) const;
  void wait_for_arrival(std::size_t worker, std::size_t step, Clock::time_point begin,
                        const Workers& workers) const;
  [[nodiscard]] bool runnable(std::size_t step, std::size_t sample) const;
  [[nodiscard]] std::size_t next_sample(const PlanWorker& worker, std::size_t step,
                                        std::size_t from) const;
  std::vector<WorkerLog> follow(std::size_t first, std::size_t samples, bool& interrupted);
  [[nodiscard]] std::size_t samples_to_count(std::size_t warm_up, bool& interrupted);
  void state_who_watched(RunResult& result) const;
  [[nodiscard]] OutputCheck check_outputs(std::size_t samples);
  [[nodiscard]] std::vector<NamedArrays> results_of(std::size_t slot);
  void set_inputs(std::size_t slot);

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  const RunOptions& options_;
  bool streams_;  // a pipeline
  double unit_;   // of the problem, in milliseconds
  PreparedPlan plan_;
  std::vector<NamedArrays> given_;       // by model: the last arrays of the inputs that were given
  std::vector<Target> targets_;          // by worker
  std::vector<std::vector<Word>> done_;  // by step, slot: the sample that ran last, from 1
  Claims claims_;
  std::vector<std::vector<std::size_t>> wakes_;  // by step: the workers that may wait for its cores
  std::atomic<std::uint64_t> changes_{0};        // steps that ended, in a pipeline
  Clock::time_point origin_;
  std::atomic<std::uint64_t> progress_{0};
};

// Its end.
double Execution::run_step(std::size_t step, std::size_t sample, WorkerLog& log) {
  const std::size_t slot = sample % plan_.slots();
  const Clock::time_point start = Clock::now();
  plan_.run(step, slot);
  const Clock::time_point end = Clock::now();
  done_[step][slot].samples.store(sample + 1, std::memory_order_release);
  log.add({step, plan_.device(step, slot), sample, milliseconds(start - origin_),
           milliseconds(end - origin_)});
  return milliseconds(end - origin_);
}

// Asleep: others compute on them.
bool Execution::wait_for_cores(std::size_t worker, std::size_t step, std::size_t sample,
                               Workers& workers) const {
  const auto& holders = plan_.holders(step);
  return workers.sleep_until(worker, [&] {
    return std::ranges::all_of(holders, [&](std::size_t holder) {
      return done_[holder][0].samples.load(std::memory_order_acquire) == sample + 1;
    });
  });
}

bool Execution::wait_for_inputs(std::size_t worker, std::size_t step, std::size_t sample,
                                Workers& workers) const {
  const auto& inputs = plan_.inputs(step);
  return std::all_of(inputs.begin(), inputs.end(), [&](std::size_t input) {
    return workers.wait(worker, done_[input][0].samples, sample + 1);
  });
}

void Execution::wait_for_arrival(std::size_t worker, std::size_t step, Clock::time_point begin,
                                 const Workers& workers) const {
  if (plan_.is_copy(step)) return;
  const double arrival = problem_.model(plan_.segments()[step].model).arrival * unit_;
  Waiting waiting(targets_[worker]);
  while (milliseconds(Clock::now() - begin) < arrival && !workers.stopped()) waiting.pause();
}

void Execution::follow_schedule(std::size_t worker, std::size_t samples, Workers& workers,
                                WorkerLog& log) {
  const PlanWorker& self = plan_.workers()[worker];
  const bool sleeps = workers.shares_cores(worker);
  Seat seat(plan_, self);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (!workers.meet(worker, sample + 1)) return;
    const Clock::time_point begin = Clock::now();
    double lost = 0;
    seat.begin();
    for (const std::size_t step : self.steps) {
      if (!wait_for_cores(worker, step, sample, workers)) return;
      if (!wait_for_inputs(worker, step, sample, workers)) return;
      wait_for_arrival(worker, step, begin, workers);
      const DeviceId device = plan_.device(step, 0);
      seat.take(device);
      if (sleeps) seat.begin();
      run_step(step, sample, log);
      if (sleeps) lost += seat.lost();
      for (const std::size_t other : wakes_[step]) workers.ring(other);
    }
    // Waiting counts too where a worker spins: one that lost its core comes late.
    if (!sleeps) lost = seat.lost();
    log.end_sample({sample, milliseconds(begin - origin_), lost});
    if (worker == 0) progress_.store(sample + 1, std::memory_order_relaxed);
  }
}

bool Execution::runnable(std::size_t step, std::size_t sample) const {
  const std::size_t slots = plan_.slots();
  const std::size_t slot = sample % slots;
  const auto has_run = [&](std::size_t other, std::size_t count) {
    return !plan_.needed(other, slot) ||
           done_[other][slot].samples.load(std::memory_order_acquire) == count;
  };
  const auto& inputs = plan_.inputs(step);
  const auto& outputs = plan_.outputs(step);
  if (!std::all_of(inputs.begin(), inputs.end(),
                   [&](std::size_t input) { return has_run(input, sample + 1); })) {
    return false;
  }
  if (sample < slots) return true;
  // The slot's memory is free when the sample before in it has been read.
  const std::size_t before = sample + 1 - slots;
  return has_run(step, before) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [&](std::size_t reader) { return has_run(reader, before); });
}

// The first sample, not before `from`, of which the worker carries out the step.
std::size_t Execution::next_sample(const PlanWorker& worker, std::size_t step,
                                   std::size_t from) const {
  while (!plan_.does(worker, step, from % plan_.slots())) ++from;
  return from;
}

void Execution::follow_pipeline(std::size_t worker, std::size_t samples, Workers& workers,
                                WorkerLog& log) {
  if (!workers.meet(worker, 1)) return;
  const PlanWorker& self = plan_.workers()[worker];
  std::vector<std::size_t> next;
  for (const std::size_t step : self.steps) next.push_back(next_sample(self, step, 0));
  Seat seat(plan_, self);
  Waiting waiting(self.target);
  const bool sleeps = workers.shares_cores(worker);
  while (!workers.stopped()) {
    const std::uint64_t seen = changes_.load(std::memory_order_acquire);
    std::size_t chosen = next.size();
    bool more = false;
    // Of the runnable ones the oldest sample, and of one sample the step nearest to the end.
    for (std::size_t i = next.size(); i-- > 0;) {
      if (next[i] >= samples) continue;
      more = true;
      if (chosen < next.size() && next[i] >= next[chosen]) continue;
      if (runnable(self.steps[i], next[i])) chosen = i;
    }
    if (!more) return;
    const DeviceId device = chosen == next.size()
                                ? DeviceId{}
                                : plan_.device(self.steps[chosen], next[chosen] % plan_.slots());
    if (!device.valid() || (sleeps && !claims_.take(device))) {
      if (sleeps) {
        (void)workers.sleep_until(worker, [&] { return changes_.load() != seen; });
      } else {
        waiting.pause();
      }
      continue;
    }
    waiting.reset();
    seat.take(device);
    seat.begin();
    const double end = run_step(self.steps[chosen], next[chosen], log);
    log.end_step(next[chosen], end, seat.lost());
    if (sleeps) claims_.release(device);
    changes_.fetch_add(1, std::memory_order_release);
    for (std::size_t other = 0; other < targets_.size(); ++other) {
      if (other != worker && workers.shares_cores(other)) workers.ring(other);
    }
    next[chosen] = next_sample(self, self.steps[chosen], next[chosen] + 1);
    log.completed(std::min(samples, *std::min_element(next.begin(), next.end())));
    if (worker == 0) progress_.store(next[chosen], std::memory_order_relaxed);
  }
}

// One thread for all streams, as a program has that uses the backend by itself: a thread for each
// would take cores from those that compute whenever a sample ends. What the streams lose to others
// is asked now and then, since that goes through all threads, which takes a core some tenths of a
// millisecond; the samples since the last time share it.
void Execution::follow_streams(std::size_t samples, Workers& workers, WorkerLog& log) {
  if (!workers.meet(0, 1)) return;
  const PlanWorker& self = plan_.workers().front();
  const std::size_t streams = self.devices.size();
  const std::unique_ptr<DisturbanceProbe> probe = plan_.probe(self, self.devices.front());
  std::queue<Clock::time_point> started;
  std::vector<std::pair<std::size_t, double>> unwatched;   // samples and their ends
  constexpr std::chrono::milliseconds kBetweenLooks{100};  // a look takes a core some tenths of one
  Clock::time_point looked = Clock::now();
  probe->begin();
  for (std::size_t next = 0; next < samples + streams; ++next) {
    if (workers.stopped()) samples = std::min(samples, next);  // what has begun is waited for
    if (next >= streams) plan_.wait((next - streams) % plan_.slots());
    const Clock::time_point now = Clock::now();
    if (next < samples) {
      plan_.start(next % plan_.slots());
      started.push(now);
    }
    if (next < streams) continue;

    const std::size_t sample = next - streams;
    const Clock::time_point start = started.front();
    started.pop();
    const DeviceId device = plan_.device(0, sample % plan_.slots());
    const double end = milliseconds(now - origin_);
    log.add({0, device, sample, milliseconds(start - origin_), end});
    unwatched.emplace_back(sample, end);
    const bool last = next + 1 == samples + streams;
    const bool round_ends = (sample + 1) % plan_.round() == 0;
    if (last || (round_ends && now - looked >= kBetweenLooks)) {
      const double lost = probe->lost() / static_cast<double>(unwatched.size());
      for (const auto& [watched, its_end] : unwatched) log.end_step(watched, its_end, lost);
      unwatched.clear();
      looked = now;
      probe->begin();
    }
    log.completed(sample + 1);
    progress_.store(sample + 1, std::memory_order_relaxed);
  }
}

std::vector<WorkerLog> Execution::follow(std::size_t first, std::size_t samples,
                                         bool& interrupted) {
  constexpr std::size_t kShortestStretch = 8;
  for (auto& words : done_) {
    for (Word& word : words) word.samples.store(0);
  }
  const std::size_t stretch = streams_ ? std::max(kShortestStretch, plan_.slots()) : 1;
  std::vector<WorkerLog> logs(targets_.size(), WorkerLog(first, stretch, plan_.round()));
  Workers workers(targets_, options_.stop);
  origin_ = Clock::now();
  progress_.store(0);
  workers.run(
      [&](std::size_t worker) {
        if (plan_.has_streams()) {
          follow_streams(samples, workers, logs[worker]);
        } else if (streams_) {
          follow_pipeline(worker, samples, workers, logs[worker]);
        } else {
          follow_schedule(worker, samples, workers, logs[worker]);
        }
      },
      [&] {
        if (!options_.progress) return;
        options_.progress(static_cast<double>(progress_.load(std::memory_order_relaxed)) /
                          static_cast<double>(samples));
      });
  interrupted = workers.interrupted();
  return logs;
}

RunResult Execution::run(bool compare) {
  const std::size_t warm_up = std::max(static_cast<std::size_t>(std::max(options_.warm_up, 0)),
                                       streams_ ? plan_.slots() : 0);
  bool interrupted = false;
  const std::size_t repeat = samples_to_count(warm_up, interrupted);
  const CoreCheck cores(targets_);
  const std::vector<WorkerLog> logs = follow(warm_up, warm_up + repeat, interrupted);
  const bool disturbed = cores.disturbed();
  const auto summarise = streams_ ? summarise_pipeline : summarise_schedule;
  RunResult result = summarise(problem_, plan_.segments(), plan_.copies().size(), logs, warm_up);
  result.interrupted = interrupted;
  if (disturbed) result.reject();
  const std::size_t complete = complete_samples(logs);
  if (compare && options_.compare && complete > 0) result.outputs = check_outputs(complete);
  if (compare && options_.keep_results && complete > 0) result.results = results_of(0);
  result.segments = plan_.segments();
  result.copies = plan_.copies();
  state_who_watched(result);
  return result;
}

std::vector<NamedArrays> Execution::results_of(std::size_t slot) {
  std::vector<NamedArrays> results;
  for (std::size_t model = 0; model < models_.size(); ++model) {
    results.push_back(plan_.outputs(model, slot));
  }
  return results;
}

void Execution::set_inputs(std::size_t slot) {
  for (std::size_t model = 0; model < given_.size(); ++model) {
    for (const auto& [input, array] : given_[model]) plan_.set_input(model, input, slot, array);
  }
}

std::vector<std::vector<NamedArrays>> Execution::run(
    std::span<const std::vector<NamedArrays>> samples) {
  for (std::size_t slot = 0; slot < samples.size(); ++slot) {
    for (std::size_t model = 0; model < samples[slot].size(); ++model) {
      for (auto& [input, array] : fitted_inputs(models_[model]->graph(), samples[slot][model])) {
        given_[model][input] = std::move(array);
      }
    }
    // All of them: an input that this sample leaves out may have another value in the slot.
    set_inputs(slot);
  }
  bool interrupted = false;
  (void)follow(0, samples.size(), interrupted);
  std::vector<std::vector<NamedArrays>> outputs;
  for (std::size_t slot = 0; slot < samples.size(); ++slot) outputs.push_back(results_of(slot));
  return outputs;
}

// As many as asked for, or as fit into the time; whole rounds.
std::size_t Execution::samples_to_count(std::size_t warm_up, bool& interrupted) {
  const auto rounds = [&](std::size_t samples) {
    return (samples + plan_.round() - 1) / plan_.round() * plan_.round();
  };
  constexpr std::size_t kFirst = 5;
  const bool timed = options_.duration > 0;
  const std::size_t fewest =
      timed ? kFirst : static_cast<std::size_t>(std::max(options_.repeat, 1));
  const double seconds = timed ? options_.duration : options_.at_least;
  if (seconds <= 0) return rounds(fewest);
  const auto trial = [&](std::size_t samples) {
    const Clock::time_point start = Clock::now();
    follow(warm_up, samples, interrupted);
    return milliseconds(Clock::now() - start);
  };
  const std::size_t fit =
      samples_that_fit(seconds, warm_up + kFirst, trial, [&] { return interrupted; });
  return rounds(std::max(fewest, fit));
}

void Execution::state_who_watched(RunResult& result) const {
  std::vector<DeviceId> unwatched;
  for (const PlanWorker& worker : plan_.workers()) {
    if (worker.copies) continue;
    for (const DeviceId device : worker.devices) {
      if (!probe_of(plan_.target(device))) unwatched.push_back(device);
    }
  }
  const auto watched = [&](DeviceId device) {
    return std::find(unwatched.begin(), unwatched.end(), device) == unwatched.end();
  };
  result.value.watched = unwatched.empty();
  for (Measured& completion : result.completions) completion.watched = unwatched.empty();
  for (std::size_t i = 0; i < result.segments.size(); ++i) {
    const auto& devices = result.segments[i].devices;
    result.segment_times[i].watched = std::all_of(devices.begin(), devices.end(), watched);
  }
  for (Measured& copy : result.copy_times) copy.watched = false;  // a link has no probe
}

OutputCheck Execution::check_outputs(std::size_t samples) {
  OutputCheck check{.compared = true, .tolerance = plan_.tolerance(), .worst_output = {}};
  for (const ModelId id : problem_.models()) {
    const NeuralModel& model = *models_[id.index()];
    const Target reference = reference_target(backend_of(problem_.model(id)).name);
    const auto whole = reference_part(model, reference);
    check.tolerance = std::max(check.tolerance, tolerance_of(whole->precision()));
    if (tolerance_of(whole->precision()) > tolerance_of(check.precision)) {
      check.precision = whole->precision();
    }
    if (options_.against_f32) {
      check.add(accuracy_of(model, *whole, options_.given_to(id.index()),
                            seed_of_slot(options_.seed, 0), reference));
    }
    const auto& keys = whole->outputs();
    for (std::size_t slot = 0; slot < std::min(samples, plan_.slots()); ++slot) {
      const Buffers inputs = model_inputs(model.graph(), options_.given_to(id.index()),
                                          seed_of_slot(options_.seed, slot), reference);
      const auto request = request_with(*whole, inputs);
      request->run();
      for (const GraphOutput& output : model.graph().outputs) {
        if (output.tensor.is_model_input()) continue;
        const auto found = plan_.output(id.index(), output.tensor, slot);
        if (!found) continue;
        const auto place = std::find(keys.begin(), keys.end(), output.tensor) - keys.begin();
        const HostBuffer expected =
            read_back(request->output(static_cast<std::size_t>(place)), reference);
        const double apart =
            difference(type_of(model.graph(), output.tensor), expected.bytes(), found->bytes());
        if (apart <= check.largest_difference) continue;
        check.largest_difference = apart;
        check.worst_output = output.name;
      }
    }
  }
  return check;
}

}  // namespace

void RunResult::reject() {
  const auto reject_all = [](std::vector<Measured>& times) {
    for (Measured& time : times) time.reject();
  };
  value.reject();
  reject_all(segment_times);
  reject_all(copy_times);
  reject_all(completions);
}

void OutputCheck::add(const std::optional<Accuracy>& model) {
  if (!model) return;
  if (!against_f32 || model->largest_error > against_f32->largest_error) against_f32 = model;
}

const NamedArrays& RunOptions::given_to(std::size_t model) const {
  static const NamedArrays kNone;
  return model < inputs.size() ? inputs[model] : kNone;
}

class LoadedPlan::State {
 public:
  State(const Problem& problem, const Plan& plan,
        const std::vector<std::unique_ptr<NeuralModel>>& models, RunOptions given)
      : options(std::move(given)), execution(problem, plan, models, options) {}

  const RunOptions options;
  Execution execution;
};

LoadedPlan::LoadedPlan(const Problem& problem, const Plan& plan,
                       const std::vector<std::unique_ptr<NeuralModel>>& models, RunOptions options)
    : state_(std::make_unique<State>(problem, plan, models, std::move(options))) {}
LoadedPlan::LoadedPlan(LoadedPlan&&) noexcept = default;
LoadedPlan& LoadedPlan::operator=(LoadedPlan&&) noexcept = default;
LoadedPlan::~LoadedPlan() = default;

std::vector<std::vector<NamedArrays>> LoadedPlan::run(
    std::span<const std::vector<NamedArrays>> samples) {
  std::vector<std::vector<NamedArrays>> outputs;
  for (std::size_t first = 0; first < samples.size();) {
    const std::size_t count = std::min(state_->execution.slots(), samples.size() - first);
    auto made = state_->execution.run(samples.subspan(first, count));
    std::move(made.begin(), made.end(), std::back_inserter(outputs));
    first += count;
  }
  return outputs;
}

RunResult LoadedPlan::measure(bool compare) {
  return state_->execution.run(compare);
}

RunResult run_plan(const Problem& problem, const Plan& plan,
                   const std::vector<std::unique_ptr<NeuralModel>>& models,
                   const RunOptions& options) {
  return Execution(problem, plan, models, options).run();
}

}  // namespace placewright
