#include "running/arrival_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/clock.h"
#include "machine/targets.h"
#include "running/turns.h"

namespace placewright {
namespace {

using namespace std::chrono_literals;

// A model compiled for a device.
struct Instance {
  std::size_t model = 0;
  DeviceId device;
  Target target;
  std::unique_ptr<CompiledPart> part;
  Buffers inputs;
  std::unique_ptr<Request> request;
  bool ran = false;  // since it was warm
};

// What the thread of an instance is to run, and what became of it.
struct Task {
  std::size_t arrival = 0;
  Clock::time_point start;
  Clock::time_point end;
};

// The threads of all instances. Tasks of one instance follow each other.
class InstanceThreads {
 public:
  explicit InstanceThreads(std::vector<Instance>& instances) : seats_(instances.size()) {
    threads_.reserve(instances.size());
    for (std::size_t i = 0; i < instances.size(); ++i) {
      threads_.emplace_back([this, i, &instances] { serve(instances[i], seats_[i]); });
    }
  }
  ~InstanceThreads() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    for (Seat& seat : seats_) seat.bell.notify_one();
  }
  InstanceThreads(const InstanceThreads&) = delete;
  InstanceThreads& operator=(const InstanceThreads&) = delete;

  void start(std::size_t instance, std::size_t arrival) {
    {
      const std::lock_guard lock(mutex_);
      seats_[instance].queue.push_back(arrival);
    }
    seats_[instance].bell.notify_one();
  }

  // Whether the task was still queued; it is taken back then.
  bool take_back(std::size_t instance, std::size_t arrival) {
    const std::lock_guard lock(mutex_);
    return std::erase(seats_[instance].queue, arrival) > 0;
  }

  // What ended since the last call; waits for something until `deadline`. Throws what a task threw.
  std::vector<Task> ended(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    any_done_.wait_until(lock, deadline, [&] { return !done_.empty() || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    return std::exchange(done_, {});
  }

 private:
  struct Seat {
    std::condition_variable bell;
    std::deque<std::size_t> queue;
  };

  void serve(Instance& instance, Seat& seat) {
    try {
      if (!instance.target.cores.empty()) bind_this_thread(instance.target.cores);
      std::unique_lock lock(mutex_);
      while (true) {
        seat.bell.wait(lock, [&] { return closed_ || !seat.queue.empty(); });
        if (closed_) return;
        Task task{.arrival = seat.queue.front()};
        seat.queue.pop_front();
        lock.unlock();
        task.start = Clock::now();
        instance.request->run();
        task.end = Clock::now();
        lock.lock();
        instance.ran = true;
        done_.push_back(task);
        any_done_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      any_done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable any_done_;
  std::vector<Task> done_;
  std::exception_ptr failure_;
  bool closed_ = false;
  std::vector<Seat> seats_;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

class ArrivalExecution {
 public:
  ArrivalExecution(const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models,
                   std::span<const ArrivingModel> arrivals, const ArrivalRunOptions& options)
      : problem_(problem), models_(models), arrivals_(arrivals), options_(options) {
    prepare();
    compile();
    threads_ = std::make_unique<InstanceThreads>(instances_);
    warm_up();
  }

  // Nullopt: interrupted.
  std::optional<std::vector<ArrivalState>> run(const ArrivalRule& rule);
  OutputCheck check_outputs();

 private:
  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  void tell(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  void prepare();
  void compile();
  void warm_up();
  void drain(std::size_t count);
  bool take_events(double now, std::vector<ArrivalState>& states, std::size_t& running);
  [[nodiscard]] double next_event(std::span<const ArrivalState> states) const;

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  std::span<const ArrivingModel> arrivals_;
  const ArrivalRunOptions& options_;
  std::vector<Instance> instances_;
  std::map<std::pair<std::size_t, DeviceId>, std::size_t> number_;  // by model and device
  std::unique_ptr<InstanceThreads> threads_;
};

void ArrivalExecution::prepare() {
  std::set<std::size_t> used;
  for (const ArrivingModel& arrival : arrivals_) used.insert(arrival.model);
  for (const std::size_t model : used) {
    for (const DeviceId device : devices_for(problem_, ModelId{model})) {
      Instance instance;
      instance.model = model;
      instance.device = device;
      instance.target = target_named(problem_.device(device).name);
      number_.emplace(std::pair{model, device}, instances_.size());
      instances_.push_back(std::move(instance));
    }
  }
}

// Several at a time: compiling uses one core.
void ArrivalExecution::compile() {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    while (!stopped()) {
      const std::size_t number = next.fetch_add(1);
      if (number >= instances_.size()) return;
      Instance& instance = instances_[number];
      try {
        const NeuralModel& model = *models_[instance.model];
        instance.part = model.compile_whole(compile_options(instance.target));
        instance.inputs = seeded_inputs(model.graph(), options_.seed, instance.target);
        instance.request = request_with(*instance.part, instance.inputs);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        return;
      }
    }
  };
  tell(fmt::format("compiling {} models for their devices", instances_.size()));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < allowed_cores().size(); ++i) threads.emplace_back(work);
  }
  if (failure) std::rethrow_exception(failure);
}

// Once on every device; those that share no core at the same time.
void ArrivalExecution::warm_up() {
  tell("warming up");
  std::vector<std::size_t> left(instances_.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty() && !stopped()) {
    std::vector<std::size_t> together;
    std::vector<std::size_t> later;
    for (const std::size_t instance : left) {
      const bool free = std::ranges::none_of(together, [&](std::size_t other) {
        return instances_[instance].device == instances_[other].device ||
               share_a_core(instances_[instance].target, instances_[other].target);
      });
      (free ? together : later).push_back(instance);
    }
    for (const std::size_t instance : together) threads_->start(instance, instance);
    drain(together.size());
    left = std::move(later);
  }
  for (Instance& instance : instances_) instance.ran = false;
}

void ArrivalExecution::drain(std::size_t count) {
  while (count > 0) count -= threads_->ended(Clock::now() + 1s).size();
}

// Arrivals and cancellations up to now; whether there was one.
bool ArrivalExecution::take_events(double now, std::vector<ArrivalState>& states,
                                   std::size_t& running) {
  bool changed = false;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    ArrivalState& state = states[i];
    if (state.stage == ArrivalStage::coming && arrivals_[i].time <= now) {
      state.stage = ArrivalStage::waiting;
      changed = true;
    }
    if (!arrivals_[i].cancelled || *arrivals_[i].cancelled > now) continue;
    if (state.stage == ArrivalStage::waiting) {
      state.stage = ArrivalStage::cancelled;
      state.start = state.end = now;
      changed = true;
    } else if (state.stage == ArrivalStage::started) {
      if (!threads_->take_back(number_.at({arrivals_[i].model, state.device}), i)) continue;
      state.stage = ArrivalStage::cancelled;
      state.device = {};
      --running;
      changed = true;
    }
  }
  return changed;
}

double ArrivalExecution::next_event(std::span<const ArrivalState> states) const {
  double next = kInfinity;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const ArrivalStage stage = states[i].stage;
    if (stage == ArrivalStage::coming) next = std::min(next, arrivals_[i].time);
    if (arrivals_[i].cancelled && stage == ArrivalStage::waiting) {
      next = std::min(next, *arrivals_[i].cancelled);
    }
  }
  return next;
}

std::optional<std::vector<ArrivalState>> ArrivalExecution::run(const ArrivalRule& rule) {
  constexpr double kLongestSleep = 20;  // milliseconds, to see whether it was interrupted
  constexpr double kShortestSleep = 0.5;
  std::vector<ArrivalState> states(arrivals_.size());
  std::size_t left = arrivals_.size();
  std::size_t running = 0;
  const Clock::time_point begin = Clock::now();
  const auto now = [&] { return milliseconds(Clock::now() - begin); };
  bool changed = false;
  while (left > 0) {
    if (stopped()) {
      drain(running);
      return std::nullopt;
    }
    changed = take_events(now(), states, running) || changed;
    left = static_cast<std::size_t>(std::ranges::count_if(states, [](const ArrivalState& state) {
      return state.stage != ArrivalStage::complete && state.stage != ArrivalStage::cancelled;
    }));
    if (left == 0) break;
    if (changed) {
      for (const auto& [arrival, device] : rule(now(), states)) {
        states[arrival].stage = ArrivalStage::started;
        states[arrival].device = device;
        states[arrival].start = now();
        threads_->start(number_.at({arrivals_[arrival].model, device}), arrival);
        ++running;
      }
      changed = false;
    }
    const double sleep = std::clamp(next_event(states) - now(), kShortestSleep, kLongestSleep);
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double, std::milli>(sleep));
    for (const Task& task : threads_->ended(until)) {
      ArrivalState& state = states[task.arrival];
      state.start = milliseconds(task.start - begin);
      state.end = milliseconds(task.end - begin);
      const auto& cancelled = arrivals_[task.arrival].cancelled;
      state.stage =
          cancelled && *cancelled < state.end ? ArrivalStage::cancelled : ArrivalStage::complete;
      --running;
      changed = true;
    }
  }
  return states;
}

// Of every instance that ran: all had the same inputs.
OutputCheck ArrivalExecution::check_outputs() {
  OutputCheck check{.compared = true, .tolerance = 0, .worst_output = {}};
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const ModelGraph& graph = models_[model]->graph();
    const Target reference = reference_target(backend_of(problem_.model(ModelId{model})).name);
    const auto whole = models_[model]->compile_whole({.device = reference.device});
    const Buffers inputs = seeded_inputs(graph, options_.seed, reference);
    const auto expected = request_with(*whole, inputs);
    expected->run();
    for (Instance& instance : instances_) {
      if (instance.model != model || !instance.ran) continue;
      check.tolerance = std::max({check.tolerance, tolerance_of(whole->precision()),
                                  tolerance_of(instance.part->precision())});
      for (std::size_t i = 0; i < whole->outputs().size(); ++i) {
        const TensorType& type = type_of(graph, whole->outputs()[i]);
        const HostBuffer right = read_back(expected->output(i), reference);
        const HostBuffer found = read_back(instance.request->output(i), instance.target);
        const double apart = difference(type, right.bytes(), found.bytes());
        if (apart <= check.largest_difference) continue;
        check.largest_difference = apart;
        check.worst_output = graph.name;
      }
    }
  }
  return check;
}

}  // namespace

std::vector<DeviceId> devices_for(const Problem& problem, ModelId model) {
  std::vector<DeviceId> devices;
  for (const DeviceId device : problem.devices()) {
    const bool able = std::ranges::all_of(problem.ops(), [&](OpId op) {
      return problem.op(op).model != model || problem.allowed(op, device);
    });
    if (able) devices.push_back(device);
  }
  return devices;
}

ArrivalRuns run_arrivals(const Problem& problem,
                         const std::vector<std::unique_ptr<NeuralModel>>& models,
                         std::span<const ArrivingModel> arrivals, std::size_t rules,
                         const std::function<ArrivalRule(std::size_t rule)>& rule,
                         const ArrivalRunOptions& options) {
  ArrivalExecution execution(problem, models, arrivals, options);
  ArrivalRuns runs;
  runs.states.resize(rules);
  for (std::size_t repetition = 0; repetition < options.repeat; ++repetition) {
    if (options.progress) {
      options.progress(fmt::format("running {:.0f} %", 100.0 * static_cast<double>(repetition) /
                                                           static_cast<double>(options.repeat)));
    }
    for (const std::size_t number : order_in_turn(static_cast<int>(repetition), rules)) {
      auto states = execution.run(rule(number));
      if (!states) {
        runs.interrupted = true;
        return runs;
      }
      runs.states[number].push_back(std::move(*states));
    }
  }
  runs.outputs = execution.check_outputs();
  return runs;
}

}  // namespace placewright
