#include "running/arrival_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <ranges>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/clock.h"
#include "machine/fan_out.h"
#include "machine/targets.h"
#include "running/turns.h"

namespace placewright {
namespace {

// A copy of a model compiled for a device.
struct Instance {
  std::size_t model = 0;
  Target target;
  std::unique_ptr<CompiledPart> part;
  Buffers inputs;
  std::unique_ptr<Request> request;
  bool ran = false;  // since it was warm, and to its end
};

// What the thread of an instance is to run, and what became of it.
struct Task {
  std::size_t arrival = 0;
  Clock::time_point start;
  Clock::time_point end;
  double lost = 0;  // to others, if the device is a single core
  bool stopped = false;
};

bool runs_to_its_end(Request& request) {
  try {
    request.run();
  } catch (const RequestStopped&) {
    return false;
  }
  return true;
}

// The threads of all instances. Tasks of one instance follow each other.
//
// Whoever ends a task tells so at once, in its own thread: what is started then needs no other
// thread to wake up first, and if it is for the same instance, none at all. All members but the
// first need the lock.
class InstanceThreads {
 public:
  // Whether somebody who waits has to know it.
  using Ended = std::function<bool(const Task& task)>;

  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  explicit InstanceThreads(std::vector<Instance>& instances)
      : instances_(instances), seats_(instances.size()) {
    threads_.reserve(instances.size());
    for (std::size_t i = 0; i < instances.size(); ++i) {
      threads_.emplace_back([this, i] { serve(instances_[i], seats_[i]); });
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

  // How many tasks it has.
  [[nodiscard]] std::size_t load(std::size_t instance) const {
    return seats_[instance].queue.size() + (seats_[instance].running ? 1 : 0);
  }

  void start(std::size_t instance, std::size_t arrival) {
    seats_[instance].queue.push_back(arrival);
    seats_[instance].bell.notify_one();
  }

  // Whether the task was still queued; it is taken back then.
  bool take_back(std::size_t instance, std::size_t arrival) {
    return std::erase(seats_[instance].queue, arrival) > 0;
  }

  // Stops the task if it runs. One that is just about to begin may not be stopped: to be called
  // again until it has ended.
  void stop(std::size_t instance, std::size_t arrival) {
    if (seats_[instance].running == arrival) instances_[instance].request->stop();
  }

  // Told of every task that ends from now on, under the lock.
  void listen(Ended listener) { listener_ = std::move(listener); }

  // Until `condition` holds or the deadline has come. Throws what a task or the listener threw.
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Clock::time_point deadline, Condition condition) {
    changed_.wait_until(lock, deadline, [&] { return failure_ || condition(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Seat {
    std::condition_variable bell;
    std::deque<std::size_t> queue;
    std::optional<std::size_t> running = {};
  };

  void serve(Instance& instance, Seat& seat) {
    try {
      if (!instance.target.cores.empty()) bind_this_thread(instance.target.cores);
      std::unique_ptr<DisturbanceProbe> probe;
      if (instance.target.cores.size() == 1) probe = probe_of(instance.target);
      std::unique_lock lock(mutex_);
      while (true) {
        seat.bell.wait(lock, [&] { return closed_ || !seat.queue.empty(); });
        if (closed_) return;
        Task task{.arrival = seat.queue.front()};
        seat.queue.pop_front();
        seat.running = task.arrival;
        lock.unlock();
        if (probe) probe->begin();
        task.start = Clock::now();
        task.stopped = !runs_to_its_end(*instance.request);
        task.end = Clock::now();
        if (probe) task.lost = probe->lost();
        lock.lock();
        seat.running.reset();
        instance.ran = !task.stopped;
        if (listener_ && listener_(task)) changed_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      changed_.notify_one();
    }
  }

  std::vector<Instance>& instances_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Ended listener_;
  std::exception_ptr failure_;
  bool closed_ = false;
  std::vector<Seat> seats_;
  std::vector<std::jthread> threads_;  // last, so that they end first
};

// Whether others took time from a round: asked by the thread that looks after it.
//
// An inference on a single core knows it itself. Of several cores it is the time for which threads
// of ours waited for one, if all inferences have equally many: helpers of a wider one would wait
// for those that are not theirs.
class RoundWatch {
 public:
  RoundWatch() : threads_(probe_of_other_threads()) { threads_->begin(); }

  // By arrival `asked` is when it was started and `lost` what it lost on a single core; `targets`
  // are those of the devices.
  void judge(ArrivalRound& round, std::span<const double> asked, std::span<const double> lost,
             const std::map<DeviceId, Target>& targets) const {
    constexpr double kFree = 0.02;  // milliseconds for each inference: a thread has to wake up
    const double waited = threads_->lost();
    std::set<std::size_t> widths;
    double taken = 0;
    double free = 0;
    for (const ArrivalState& state : round.states) {
      if (!state.device.valid()) continue;
      taken += state.end - state.start;
      free += kFree;
      widths.insert(targets.at(state.device).cores.size());
    }
    // What is no set of cores would need a probe of its own.
    round.watched = widths.size() <= 1 && !widths.contains(0) &&
                    !cores_were_shared(round.states, asked, targets);
    const double all = widths.contains(1) ? std::accumulate(lost.begin(), lost.end(), 0.0) : waited;
    round.disturbed = round.watched && all - free > kDisturbed * taken;
  }

 private:
  // Also by one that was asked to start and had to wait until another one let it.
  static bool cores_were_shared(std::span<const ArrivalState> states, std::span<const double> asked,
                                const std::map<DeviceId, Target>& targets) {
    const auto at_once = [&](std::size_t some, std::size_t other) {
      return asked[some] < states[other].end && asked[other] < states[some].end;
    };
    for (std::size_t i = 0; i < states.size(); ++i) {
      for (std::size_t other = 0; other < i; ++other) {
        if (!states[i].device.valid() || !states[other].device.valid()) continue;
        const Target& target = targets.at(states[i].device);
        if (at_once(i, other) && share_a_core(target, targets.at(states[other].device))) {
          return true;
        }
      }
    }
    return false;
  }

  std::unique_ptr<DisturbanceProbe> threads_;
};

}  // namespace

class ArrivalRunner::State {
 public:
  State(const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models,
        const std::vector<ArrivalPlace>& places, ArrivalRunOptions options)
      : problem_(problem), models_(models), options_(std::move(options)) {
    prepare(places);
    compile();
    threads_ = std::make_unique<InstanceThreads>(instances_);
    warm_up();
  }

  std::optional<ArrivalRound> run(std::span<const ArrivingModel> arrivals, const ArrivalRule& rule);
  OutputCheck check_outputs();

 private:
  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  void tell(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  // One run of all arrivals. Under the lock of the threads.
  struct Round {
    std::span<const ArrivingModel> arrivals;
    const ArrivalRule& rule;
    std::vector<ArrivalState> states;
    std::vector<std::size_t> instance;  // by arrival, from its start on
    std::vector<double> asked;          // by arrival: when it was started
    std::vector<double> lost;           // by arrival, on a single core
    std::size_t running = 0;
    bool ending = false;  // nothing is started any more
    Clock::time_point begin = Clock::now();

    [[nodiscard]] double now() const { return milliseconds(Clock::now() - begin); }
    [[nodiscard]] bool over() const {
      return std::ranges::all_of(states, [](const ArrivalState& state) {
        return state.stage == ArrivalStage::complete || state.stage == ArrivalStage::cancelled;
      });
    }
  };

  [[nodiscard]] Buffers inputs_of(std::size_t model, const Target& target) const {
    static const NamedArrays kNone;
    return model_inputs(models_[model]->graph(),
                        model < options_.inputs.size() ? options_.inputs[model] : kNone,
                        options_.seed, target);
  }

  // As long as the caller keeps what it gets, however that ends: nobody must be told of a round
  // that is gone. Under the lock.
  [[nodiscard]] std::shared_ptr<void> listen(InstanceThreads::Ended listener) {
    threads_->listen(std::move(listener));
    return {nullptr, [this](void*) { threads_->listen({}); }};
  }

  void prepare(const std::vector<ArrivalPlace>& places);
  void compile();
  void warm_up();
  bool play(Round& round);
  bool take_events(Round& round);
  void decide(Round& round);
  static void end(Round& round, const Task& task);
  static double next_event(const Round& round);

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  ArrivalRunOptions options_;
  std::map<DeviceId, Target> targets_;
  std::vector<Instance> instances_;
  std::map<std::pair<std::size_t, DeviceId>, std::vector<std::size_t>> copies_;  // by model, device
  std::unique_ptr<InstanceThreads> threads_;
};

void ArrivalRunner::State::prepare(const std::vector<ArrivalPlace>& places) {
  for (const ArrivalPlace& place : places) {
    targets_.emplace(place.device, place.target);
    for (std::size_t copy = 0; copy < place.copies; ++copy) {
      copies_[{place.model, place.device}].push_back(instances_.size());
      Instance& instance = instances_.emplace_back();
      instance.model = place.model;
      instance.target = place.target;
    }
  }
}

// Several at a time: compiling uses one core.
void ArrivalRunner::State::compile() {
  tell(fmt::format("compiling {} models for their devices", instances_.size()));
  const FanOut fan_out{.threads = static_cast<int>(allowed_cores().size())};
  fan_out.run(instances_.size(), [&](std::size_t number) {
    if (stopped()) return;
    Instance& instance = instances_[number];
    const NeuralModel& model = *models_[instance.model];
    instance.part = model.compile_whole(compile_options(instance.target));
    instance.inputs = inputs_of(instance.model, instance.target);
    instance.request = request_with(*instance.part, instance.inputs);
  });
}

// Once on every device; those that share no core at the same time.
void ArrivalRunner::State::warm_up() {
  tell("warming up");
  std::vector<std::size_t> left(instances_.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty() && !stopped()) {
    std::vector<std::size_t> together;
    std::vector<std::size_t> later;
    for (const std::size_t instance : left) {
      const bool free = std::ranges::none_of(together, [&](std::size_t other) {
        return name_of(instances_[instance].target) == name_of(instances_[other].target) ||
               share_a_core(instances_[instance].target, instances_[other].target);
      });
      (free ? together : later).push_back(instance);
    }
    auto lock = threads_->lock();
    std::size_t running = together.size();
    const auto listening = listen([&](const Task&) { return --running == 0; });
    for (const std::size_t instance : together) threads_->start(instance, instance);
    threads_->wait(lock, Clock::time_point::max(), [&] { return running == 0; });
    left = std::move(later);
  }
  for (Instance& instance : instances_) instance.ran = false;
}

// Arrivals and cancellations up to now; whether there was one.
bool ArrivalRunner::State::take_events(Round& round) {
  const double now = round.now();
  bool changed = false;
  for (std::size_t i = 0; i < round.arrivals.size(); ++i) {
    ArrivalState& state = round.states[i];
    if (state.stage == ArrivalStage::coming && round.arrivals[i].time <= now) {
      state.stage = ArrivalStage::waiting;
      changed = true;
    }
    if (!round.arrivals[i].cancelled || *round.arrivals[i].cancelled > now) continue;
    if (state.stage == ArrivalStage::waiting) {
      state.stage = ArrivalStage::cancelled;
      state.start = state.end = now;
      changed = true;
    } else if (state.stage == ArrivalStage::started) {
      if (!threads_->take_back(round.instance[i], i)) {
        threads_->stop(round.instance[i], i);
        continue;
      }
      state.stage = ArrivalStage::cancelled;
      state.device = {};
      --round.running;
      changed = true;
    }
  }
  return changed;
}

double ArrivalRunner::State::next_event(const Round& round) {
  double next = kInfinity;
  for (std::size_t i = 0; i < round.arrivals.size(); ++i) {
    const ArrivalStage stage = round.states[i].stage;
    if (stage == ArrivalStage::coming) next = std::min(next, round.arrivals[i].time);
    const bool can_be_cancelled = stage == ArrivalStage::waiting || stage == ArrivalStage::started;
    if (round.arrivals[i].cancelled && can_be_cancelled) {
      next = std::min(next, *round.arrivals[i].cancelled);
    }
  }
  return next;
}

void ArrivalRunner::State::decide(Round& round) {
  if (round.ending) return;
  for (const auto& [arrival, device] : round.rule(round.now(), round.states)) {
    round.states[arrival].stage = ArrivalStage::started;
    round.states[arrival].device = device;
    round.states[arrival].start = round.asked[arrival] = round.now();
    round.instance[arrival] =
        std::ranges::min(copies_.at({round.arrivals[arrival].model, device}), {},
                         [&](std::size_t instance) { return threads_->load(instance); });
    threads_->start(round.instance[arrival], arrival);
    ++round.running;
  }
}

void ArrivalRunner::State::end(Round& round, const Task& task) {
  ArrivalState& state = round.states[task.arrival];
  state.start = milliseconds(task.start - round.begin);
  state.end = milliseconds(task.end - round.begin);
  round.lost[task.arrival] = task.lost;
  const auto& cancelled = round.arrivals[task.arrival].cancelled;
  state.stage = task.stopped || (cancelled && *cancelled < state.end) ? ArrivalStage::cancelled
                                                                      : ArrivalStage::complete;
  --round.running;
}

// False: interrupted.
bool ArrivalRunner::State::play(Round& round) {
  constexpr double kLongestSleep = 20;  // milliseconds, to see whether it was interrupted
  constexpr double kShortestSleep = 0.5;
  auto lock = threads_->lock();
  round.begin = Clock::now();
  const auto listening = listen([&](const Task& task) {
    end(round, task);
    (void)take_events(round);
    decide(round);
    return round.running == 0;
  });
  while (!round.over()) {
    round.ending = stopped();
    if (round.ending && round.running == 0) return false;
    if (take_events(round)) decide(round);
    const double sleep = std::clamp(next_event(round) - round.now(), kShortestSleep, kLongestSleep);
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double, std::milli>(sleep));
    threads_->wait(lock, until, [&] { return round.over(); });
  }
  return true;
}

std::optional<ArrivalRound> ArrivalRunner::State::run(std::span<const ArrivingModel> arrivals,
                                                      const ArrivalRule& rule) {
  Round round{.arrivals = arrivals,
              .rule = rule,
              .states = std::vector<ArrivalState>(arrivals.size()),
              .instance = std::vector<std::size_t>(arrivals.size()),
              .asked = std::vector<double>(arrivals.size()),
              .lost = std::vector<double>(arrivals.size())};
  const RoundWatch watch;
  if (!play(round)) return std::nullopt;
  ArrivalRound result{.states = std::move(round.states)};
  watch.judge(result, round.asked, round.lost, targets_);
  return result;
}

// Of every instance that ran: all had the same inputs.
OutputCheck ArrivalRunner::State::check_outputs() {
  OutputCheck check{.compared = true, .tolerance = 0, .worst_output = {}};
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const ModelGraph& graph = models_[model]->graph();
    const Target reference = reference_target(backend_of(problem_.model(ModelId{model})).name);
    const auto whole = reference_part(*models_[model], reference);
    const Buffers inputs = inputs_of(model, reference);
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

ArrivalRunner::ArrivalRunner(const Problem& problem,
                             const std::vector<std::unique_ptr<NeuralModel>>& models,
                             std::span<const ArrivingModel> arrivals,
                             const std::vector<ArrivalPlace>& places, ArrivalRunOptions options)
    : arrivals_(arrivals),
      state_(std::make_unique<State>(problem, models, places, std::move(options))) {}
ArrivalRunner::~ArrivalRunner() = default;

std::optional<ArrivalRound> ArrivalRunner::run(const ArrivalRule& rule) {
  return state_->run(arrivals_, rule);
}

std::optional<ArrivalRound> ArrivalRunner::run(std::span<const ArrivingModel> arrivals,
                                               const ArrivalRule& rule) {
  return state_->run(arrivals, rule);
}

OutputCheck ArrivalRunner::check_outputs() {
  return state_->check_outputs();
}

std::vector<ArrivalPlace> places_of(const Problem& problem,
                                    std::span<const ArrivingModel> arrivals) {
  std::set<std::size_t> used;
  for (const ArrivingModel& arrival : arrivals) used.insert(arrival.model);
  std::vector<ArrivalPlace> places;
  for (const std::size_t model : used) {
    for (const DeviceId device : problem.devices()) {
      const bool able = std::ranges::all_of(problem.ops(), [&](OpId op) {
        return problem.op(op).model.index() != model || problem.allowed(op, device);
      });
      if (able) places.push_back({model, device, target_named(problem.device(device).name)});
    }
  }
  return places;
}

ArrivalRule all_at_once(std::vector<DeviceId> devices) {
  return [devices = std::move(devices)](double, std::span<const ArrivalState> states) {
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::waiting) starts.push_back({i, devices[i]});
    }
    return starts;
  };
}

ArrivalRule shortest_first(std::vector<DeviceId> devices, std::vector<double> times) {
  return [devices = std::move(devices), times = std::move(times)](
             double, std::span<const ArrivalState> states) -> std::vector<ArrivalStart> {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::started) return {};
      if (states[i].stage != ArrivalStage::waiting) continue;
      if (!next || times[i] < times[*next]) next = i;
    }
    if (!next) return {};
    return {{*next, devices[*next]}};
  };
}

ArrivalRuns run_arrivals(ArrivalRunner& runner, std::size_t rules,
                         const std::function<ArrivalRule(std::size_t rule)>& rule,
                         std::size_t repeat, const std::function<void(double done)>& progress) {
  ArrivalRuns runs;
  runs.rounds.resize(rules);
  for (std::size_t repetition = 0; repetition < repeat; ++repetition) {
    if (progress) progress(static_cast<double>(repetition) / static_cast<double>(repeat));
    for (const std::size_t number : order_in_turn(static_cast<int>(repetition), rules)) {
      auto round = runner.run(rule(number));
      if (!round) {
        runs.interrupted = true;
        return runs;
      }
      runs.rounds[number].push_back(std::move(*round));
    }
  }
  runs.outputs = runner.check_outputs();
  return runs;
}

}  // namespace placewright
