#include "analysis/online.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <time.h>

#include "analysis/completion_report.h"
#include "bounds/bounds.h"
#include "coarsen/cut_nodes.h"
#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "planners/device_choice.h"
#include "planners/flow/chain_groups.h"
#include "planners/flow/event_run.h"
#include "planners/flow/flow_rule.h"
#include "planners/flow/model_shares.h"
#include "planners/published/transient_rule.h"
#include "planners/random_numbers.h"
#include "problem/join.h"
#include "problem/lanes.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// Ops of a layer that the flow looks at: with few devices more change little and cost time.
constexpr std::size_t kMostReady = 8;
constexpr std::size_t kEventsBetweenChecks = 16;
// For the devices and turns of waiting models: a few milliseconds at most.
constexpr std::size_t kShareEvaluations = 2000;

// What decides at each event which ops start.
class OnlineRule {
 public:
  virtual ~OnlineRule() = default;
  // Before the ops that have not started are planned again.
  virtual void begin(const EventRun& run) = 0;
  virtual void decide(EventRun& run, DeviceChoice& choice) = 0;
};

class FlowDecisions : public OnlineRule {
 public:
  FlowDecisions(const Problem& problem, bool afresh)
      : problem_(problem), afresh_(afresh), costs_(std::make_unique<FlowCosts>(problem)) {}

  void begin(const EventRun&) override {
    if (afresh_) costs_ = std::make_unique<FlowCosts>(problem_);
    rule_.reset();
  }

  void decide(EventRun& run, DeviceChoice& choice) override {
    if (!rule_) rule_ = std::make_unique<FlowRule>(problem_, *costs_, choice, kMostReady);
    if (afresh_) rule_->reset();
    (*rule_)(run);
  }

 private:
  const Problem& problem_;
  bool afresh_;
  std::unique_ptr<FlowCosts> costs_;
  std::unique_ptr<FlowRule> rule_;
};

class TransientDecisions : public OnlineRule {
 public:
  explicit TransientDecisions(const Problem& problem) : speed_ups_(problem) {}
  void begin(const EventRun&) override {}
  void decide(EventRun& run, DeviceChoice& choice) override {
    start_largest_speed_ups(run, speed_ups_, choice);
  }

 private:
  SpeedUps speed_ups_;
};

enum class ModelDevice {
  best_average,  // of the largest average speed-up that no model has had, else free first (ASWM)
  first_end,     // where it would end first
};

// Each model has one device from its arrival on; a device runs the ops of its oldest model first.
class WholeModelDecisions : public OnlineRule {
 public:
  WholeModelDecisions(const Problem& problem, ModelDevice choice)
      : problem_(problem),
        choice_(choice),
        speed_ups_(problem),
        device_of_(problem.model_count()),
        free_at_(problem.device_count(), 0),
        memory_is_ample_(memory_cannot_bind(problem) &&
                         problem.group_count() == problem.op_count()) {
    std::vector<std::pair<ModelId, OpId>> pairs;
    for (const OpId op : problem.ops()) pairs.emplace_back(problem.op(op).model, op);
    ops_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), pairs);
  }

  void begin(const EventRun&) override {}

  void decide(EventRun& run, DeviceChoice& choice) override {
    std::size_t idle = 0;
    for (const DeviceId device : problem_.devices()) idle += run.idle_lanes(device);
    if (idle == 0) return;
    // The oldest model first; an op whose device is busy is passed over.
    while (idle > 0) {
      OpId oldest;
      DeviceId where;
      for (const OpId op : run.ready()) {
        if (oldest.valid() && arrival(op) >= arrival(oldest)) continue;
        const DeviceId device = device_for(op, run.now(), choice);
        if (!device.valid() || run.idle_lanes(device) == 0) continue;
        oldest = op;
        where = device;
      }
      if (!oldest.valid()) return;
      choice.take(oldest, where);
      run.start(oldest, where);
      // An op that takes no time leaves its lane idle.
      if (problem_.time(oldest, where) > 0) --idle;
    }
  }

 private:
  [[nodiscard]] double arrival(OpId op) const {
    return problem_.model(problem_.op(op).model).arrival;
  }

  DeviceId device_for(OpId op, double now, DeviceChoice& choice) {
    DeviceId& device = device_of_[problem_.op(op).model];
    if (!device.valid()) device = chosen(problem_.op(op).model, now);
    if (memory_is_ample_ && problem_.allowed(op, device)) return device;
    DeviceId best;
    double best_speed_up = -1;
    for (const DeviceId candidate : choice.candidates(op)) {
      if (candidate == device) return device;
      if (speed_ups_.of(op, candidate) <= best_speed_up) continue;
      best = candidate;
      best_speed_up = speed_ups_.of(op, candidate);
    }
    return best;
  }

  // Infinite where the device cannot run all of the model.
  [[nodiscard]] double time_of(ModelId model, DeviceId device) const {
    double time = 0;
    for (const OpId op : ops_[model]) {
      time += problem_.allowed(op, device) ? problem_.time(op, device) : kInfinity;
    }
    return time / useful_lanes(problem_, device);
  }

  DeviceId chosen(ModelId model, double now) {
    DeviceId best;
    double least = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      const double time = time_of(model, device);
      if (time == kInfinity) continue;
      const double free = std::max(now, free_at_[device]);
      const bool unused = free_at_[device] == 0;
      const double badness = choice_ == ModelDevice::first_end ? free + time
                             : unused                          ? -speed_ups_.mean(model, device)
                                                               : free;
      if (badness >= least) continue;
      best = device;
      least = badness;
    }
    if (!best.valid()) return DeviceId{0};
    free_at_[best] = std::max(now, free_at_[best]) + time_of(model, best);
    return best;
  }

  const Problem& problem_;
  ModelDevice choice_;
  SpeedUps speed_ups_;
  Rows<ModelId, OpId> ops_;
  Table<ModelId, DeviceId> device_of_;
  Table<DeviceId, double> free_at_;
  bool memory_is_ample_;  // and no op is tied to another: any allowed device will do
};

// Each model that has not begun gets its device and its turn anew at every event.
class SharedDecisions : public OnlineRule {
 public:
  SharedDecisions(const Problem& problem, double least_gain)
      : problem_(problem),
        shares_(problem),
        least_gain_(least_gain),
        turn_(problem.model_count()) {}

  void begin(const EventRun& run) override {
    Table<ModelId, char> begun(problem_.model_count(), 0);
    Table<DeviceId, double> busy(problem_.device_count(), 0);
    for (const OpId op : problem_.ops()) {
      if (!run.started(op)) continue;
      begun[problem_.op(op).model] = 1;
      double& end = busy[run.placement()[op]];
      end = std::max(end, run.end(op));
    }
    std::vector<WaitingModel> waiting;
    for (const OpId op : run.ready()) {
      const ModelId model = problem_.op(op).model;
      if (begun[model]) continue;
      begun[model] = 1;
      waiting.push_back({model, run.now()});
    }
    for (const ModelStart& start : shares_.best(waiting, busy, kShareEvaluations, least_gain_)) {
      turn_[start.model] = {start.device, start.start};
    }
  }

  void decide(EventRun& run, DeviceChoice& choice) override {
    while (true) {
      OpId next;
      for (const OpId op : run.ready()) {
        const Turn& turn = turn_[problem_.op(op).model];
        if (!turn.device.valid() || turn.start > run.now() || run.idle_lanes(turn.device) == 0) {
          continue;
        }
        if (!next.valid() || turn.start < turn_[problem_.op(next).model].start) next = op;
      }
      if (!next.valid()) return;
      const DeviceId device = turn_[problem_.op(next).model].device;
      choice.take(next, device);
      run.start(next, device);
    }
  }

 private:
  struct Turn {
    DeviceId device;
    double start = 0;
  };

  const Problem& problem_;
  ModelShares shares_;
  double least_gain_;
  Table<ModelId, Turn> turn_;
};

// One model after the other, each on its fastest device; of those that wait the shortest first.
class ShortestFirstDecisions : public OnlineRule {
 public:
  explicit ShortestFirstDecisions(const Problem& problem)
      : problem_(problem), begun_(problem.model_count(), 0) {
    const ModelShares times(problem);
    for (const ModelId model : problem.models()) {
      fastest_.push_back(times.fastest(model));
      alone_.push_back(times.time(model, fastest_[model]));
    }
  }

  void begin(const EventRun& run) override {
    begun_.assign(problem_.model_count(), 0);
    for (const OpId op : problem_.ops()) {
      if (run.started(op)) begun_[problem_.op(op).model] = 1;
    }
  }

  void decide(EventRun& run, DeviceChoice& choice) override {
    while (!run.ready().empty() && nothing_runs(run)) {
      OpId next = run.ready().front();
      for (const OpId op : run.ready()) {
        if (rank(op) < rank(next)) next = op;
      }
      const ModelId model = problem_.op(next).model;
      DeviceId device = fastest_[model];
      const auto devices = choice.candidates(next);
      if (devices.empty()) return;
      if (std::ranges::find(devices, device) == devices.end()) device = devices.front();
      choice.take(next, device);
      run.start(next, device);
      begun_[model] = 1;
    }
  }

 private:
  [[nodiscard]] bool nothing_runs(const EventRun& run) const {
    return std::ranges::all_of(problem_.devices(),
                               [&](DeviceId device) { return run.free_at(device) <= run.now(); });
  }
  // A model that has begun goes on before another one.
  [[nodiscard]] std::pair<bool, double> rank(OpId op) const {
    const ModelId model = problem_.op(op).model;
    return {begun_[model] == 0, alone_[model]};
  }

  const Problem& problem_;
  Table<ModelId, DeviceId> fastest_;
  Table<ModelId, double> alone_;  // on it
  Table<ModelId, char> begun_;
};

// A model is one op then: what a cut costs is not known before all of its parts are placed.
bool models_stay_whole(const Problem& problem) {
  return problem.has_sharing() || problem.has_overheads();
}

std::vector<std::unique_ptr<OnlineRule>> rules_of(const Problem& problem, OnlineMethod method,
                                                  const OnlineOptions& options) {
  std::vector<std::unique_ptr<OnlineRule>> rules;
  switch (method) {
    case OnlineMethod::talos:
    case OnlineMethod::afresh:
      if (models_stay_whole(problem)) {
        rules.push_back(std::make_unique<SharedDecisions>(problem, options.least_gain));
        break;
      }
      rules.push_back(std::make_unique<WholeModelDecisions>(problem, ModelDevice::first_end));
      rules.push_back(std::make_unique<FlowDecisions>(problem, method == OnlineMethod::afresh));
      break;
    case OnlineMethod::aswm:
      rules.push_back(std::make_unique<WholeModelDecisions>(problem, ModelDevice::best_average));
      break;
    case OnlineMethod::tsam:
      rules.push_back(std::make_unique<TransientDecisions>(problem));
      break;
    case OnlineMethod::shortest:
      rules.push_back(std::make_unique<ShortestFirstDecisions>(problem));
      break;
  }
  return rules;
}

double percentile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  const double position = std::ceil(fraction * static_cast<double>(values.size()));
  const auto index = static_cast<std::size_t>(std::max(1.0, position)) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

DecisionTime decision_time(const std::vector<double>& seconds) {
  return {percentile(seconds, 0.5), percentile(seconds, 0.99)};
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

class OnlinePlanner::State {
 public:
  State(const Problem& problem, OnlineMethod method, const OnlineOptions& options)
      : problem_(problem),
        rules_(rules_of(problem, method, options)),
        runs_(rules_.size(), EventRun(problem)),
        tails_(problem) {
    for (const OpId op : problem.ops()) {
      if (problem.successors(op).empty()) last_ops_.push_back(op);
    }
  }

  // The best of the runs that the rules play to the end.
  const EventRun* decide(const Placement& placement, const Schedule& before, double now,
                         const Table<ModelId, char>& known) {
    const EventRun* best = nullptr;
    double least = kInfinity;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      runs_[i].resume(placement, before, now, known);
      if (!play_to_end(runs_[i], *rules_[i], known, least)) continue;
      const double total = predicted_total(runs_[i], known);
      if (total >= least) continue;
      best = &runs_[i];
      least = total;
    }
    return best;
  }

 private:
  // Gives up as soon as the total cannot be below `limit`.
  bool play_to_end(EventRun& run, OnlineRule& rule, const Table<ModelId, char>& known,
                   double limit) {
    DeviceChoice choice = DeviceChoice::within_memory(problem_);
    for (const OpId op : problem_.ops()) {
      if (run.started(op)) choice.take(op, run.placement()[op]);
    }
    rule.begin(run);
    std::size_t events = 0;
    const auto hopeless = [&] {
      return limit < kInfinity && ++events % kEventsBetweenChecks == 0 &&
             least_total(run, known) >= limit;
    };
    return run_events(
        run, [&](EventRun& now) { rule.decide(now, choice); }, hopeless);
  }

  // A model with a ready op is complete no earlier than that op and all after it take.
  double least_total(const EventRun& run, const Table<ModelId, char>& known) {
    ends_.assign(problem_.model_count(), 0);
    for (const OpId op : run.ready()) {
      double& end = ends_[problem_.op(op).model];
      end = std::max(end, run.now() + tails_.tail(op));
    }
    for (const OpId op : last_ops_) {
      double& end = ends_[problem_.op(op).model];
      if (run.started(op)) end = std::max(end, run.end(op));
    }
    return weighted_total(ends_, known);
  }

  [[nodiscard]] double predicted_total(const EventRun& run,
                                       const Table<ModelId, char>& known) const {
    Table<ModelId, double> last(problem_.model_count(), 0);
    for (const OpId op : problem_.ops()) {
      double& end = last[problem_.op(op).model];
      end = std::max(end, run.end(op));
    }
    return weighted_total(last, known);
  }

  [[nodiscard]] double weighted_total(const Table<ModelId, double>& ends,
                                      const Table<ModelId, char>& known) const {
    double total = 0;
    for (const ModelId model : problem_.models()) {
      if (known[model]) total += problem_.model(model).weight * ends[model];
    }
    return total;
  }

  const Problem& problem_;
  std::vector<std::unique_ptr<OnlineRule>> rules_;
  std::vector<EventRun> runs_;  // one for each rule
  FlowCosts tails_;
  std::vector<OpId> last_ops_;
  Table<ModelId, double> ends_;
};

OnlinePlanner::OnlinePlanner(const Problem& problem, OnlineMethod method,
                             const OnlineOptions& options)
    : state_(std::make_unique<State>(problem, method, options)) {}
OnlinePlanner::OnlinePlanner(OnlinePlanner&&) noexcept = default;
OnlinePlanner& OnlinePlanner::operator=(OnlinePlanner&&) noexcept = default;
OnlinePlanner::~OnlinePlanner() = default;

std::optional<OnlinePlanner::Decision> OnlinePlanner::decide(const Placement& placement,
                                                             const Schedule& before, double now,
                                                             const Table<ModelId, char>& known) {
  const EventRun* run = state_->decide(placement, before, now, known);
  if (run == nullptr) return std::nullopt;
  return Decision{run->placement(), run->schedule()};
}

namespace {

class OnlineMachine {
 public:
  // `whole`: every model is one op, which can be stopped.
  OnlineMachine(const Problem& problem, bool whole, const ArrivalTrace& trace, OnlineMethod method,
                const OnlineOptions& options)
      : problem_(problem),
        whole_(whole),
        trace_(trace),
        planner_(problem, method, options),
        placement_(problem.op_count()),
        known_(problem.model_count(), 0),
        cancelled_(problem.model_count(), 0) {
    schedule_.start.assign(problem.op_count(), 0);
    schedule_.end.assign(problem.op_count(), 0);
  }

  OnlineRun play() {
    std::set<double> moments;
    for (const TraceArrival& arrival : trace_.arrivals) {
      moments.insert(arrival.time);
      if (arrival.cancelled) moments.insert(*arrival.cancelled);
    }
    std::vector<double> latencies;
    std::vector<double> processor_times;
    for (const double moment : moments) {
      const auto begin = std::chrono::steady_clock::now();
      const double processor_begin = thread_seconds();
      if (!plan_again(moment)) {
        result_.fault = fmt::format("no device has room for the ops at {}", moment);
        return std::move(result_);
      }
      processor_times.push_back(thread_seconds() - processor_begin);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      latencies.push_back(taken.count());
    }
    result_.decisions = moments.size();
    result_.latency = decision_time(latencies);
    result_.processor = decision_time(processor_times);
    sum_up();
    return std::move(result_);
  }

 private:
  bool plan_again(double moment) {
    for (std::size_t i = 0; i < trace_.arrivals.size(); ++i) {
      const TraceArrival& arrival = trace_.arrivals[i];
      const bool gone = arrival.cancelled && *arrival.cancelled <= moment;
      known_[ModelId{i}] = arrival.time <= moment && !gone;
      if (arrival.cancelled == moment) cancel(ModelId{i}, moment);
    }
    const auto decision = planner_.decide(placement_, schedule_, moment, known_);
    if (!decision) return false;
    placement_ = decision->placement;
    schedule_ = decision->schedule;
    for (const OpId op : problem_.ops()) {
      if (known_[problem_.op(op).model] && schedule_.start[op] >= moment) ++result_.planned_ops;
    }
    return true;
  }

  // Too late for a model whose last op has ended. What has not started never will (OnlinePlanner), what runs is
  // stopped if the model is whole.
  void cancel(ModelId model, double moment) {
    for (const OpId op : problem_.ops()) {
      if (problem_.op(op).model != model) continue;
      if (started(op) && schedule_.end[op] <= moment) continue;
      cancelled_[model] = 1;
      if (whole_ && started(op)) schedule_.end[op] = moment;
    }
  }

  [[nodiscard]] bool started(OpId op) const { return placement_[op].valid(); }

  // The op as it ran: one that was stopped took no longer than until then.
  [[nodiscard]] Op as_run(OpId op) const {
    Op run = problem_.op(op);
    if (!whole_ || !cancelled_[run.model]) return run;
    const double length = schedule_.end[op] - schedule_.start[op];
    for (double& time : run.time) {
      if (time != kUnsupported) time = std::min(time, length);
    }
    return run;
  }

  // What has run, as a plan of what was there to be run.
  void sum_up() {
    ProblemDraft draft = problem_.draft();
    std::vector<OpId> kept;
    Table<OpId, OpId> number(problem_.op_count());
    draft.ops.clear();
    for (const OpId op : problem_.ops()) {
      if (!started(op)) continue;
      number[op] = OpId{kept.size()};
      kept.push_back(op);
      draft.ops.push_back(as_run(op));
    }
    keep_only(draft, number);
    result_.models.resize(trace_.arrivals.size());
    for (std::size_t i = 0; i < trace_.arrivals.size(); ++i) {
      OnlineModel& model = result_.models[i];
      model.completion = trace_.arrivals[i].time;
      model.complete = cancelled_[ModelId{i}] == 0;
      for (const OpId op : problem_.ops()) {
        if (problem_.op(op).model.index() != i) continue;
        if (started(op)) model.completion = std::max(model.completion, schedule_.end[op]);
      }
      // A cancelled model counts for nothing, but what it ran took its time.
      if (!model.complete) draft.models[i].weight = 0;
      const auto& deadline = trace_.arrivals[i].deadline;
      model.late = model.complete && deadline && model.completion > *deadline;
    }
    if (kept.empty()) return;  // all were cancelled before anything ran
    check(Problem(std::move(draft)), kept, number);
  }

  static void keep_only(ProblemDraft& draft, const Table<OpId, OpId>& number) {
    const auto renumber = [&](std::vector<OpId>& ops) {
      std::erase_if(ops, [&](OpId op) { return !number[op].valid(); });
      for (OpId& op : ops) op = number[op];
    };
    std::erase_if(draft.tensors,
                  [&](const Tensor& tensor) { return !number[tensor.producer].valid(); });
    for (Tensor& tensor : draft.tensors) {
      tensor.producer = number[tensor.producer];
      renumber(tensor.consumers);
    }
    for (auto& group : draft.colocated) renumber(group);
    std::erase_if(draft.colocated, [](const auto& group) { return group.size() < 2; });
    for (SharedWeight& weight : draft.shared_weights) renumber(weight.ops);
    std::erase_if(draft.shared_weights,
                  [](const SharedWeight& weight) { return weight.ops.empty(); });
  }

  void check(Problem done, const std::vector<OpId>& kept, const Table<OpId, OpId>& number) {
    Schedule schedule;
    schedule.start.assign(kept.size(), 0);
    schedule.end.assign(kept.size(), 0);
    Placement placement(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      placement[OpId{i}] = placement_[kept[i]];
      schedule.start[OpId{i}] = schedule_.start[kept[i]];
      schedule.end[OpId{i}] = schedule_.end[kept[i]];
    }
    Table<TensorId, TensorId> tensor_number(problem_.tensor_count());
    std::size_t tensors = 0;
    for (const TensorId tensor : problem_.tensors()) {
      if (number[problem_.producer(tensor)].valid()) tensor_number[tensor] = TensorId{tensors++};
    }
    for (Transfer transfer : schedule_.transfers) {
      // A transfer for an op that was then placed elsewhere was sent in vain; it is over.
      transfer.tensor = tensor_number[transfer.tensor];
      if (needed(done, placement, transfer)) schedule.transfers.push_back(transfer);
    }
    Plan plan = schedule_plan(done, std::move(placement), std::move(schedule));
    result_.total_completion = plan.value;
    result_.lower_bound = best_lower_bound(done).lower_bound;
    const auto violations = verify(done, plan);
    if (!violations.empty()) result_.fault = violations.front().message;
    result_.schedule = OnlineSchedule{std::move(done), std::move(plan)};
  }

  static bool needed(const Problem& done, const Placement& placement, const Transfer& transfer) {
    if (transfer.leg == Leg::out) {
      for (const OpId reader : done.consumers(transfer.tensor)) {
        if (placement[reader] != transfer.from) return true;
      }
      return false;
    }
    for (const OpId reader : done.consumers(transfer.tensor)) {
      if (placement[reader] == transfer.to) return true;
    }
    return false;
  }

  const Problem& problem_;
  bool whole_;
  const ArrivalTrace& trace_;
  OnlinePlanner planner_;
  Placement placement_;  // of what has begun, and of what is planned to
  Schedule schedule_;
  Table<ModelId, char> known_;
  Table<ModelId, char> cancelled_;  // before its last op had ended
  OnlineRun result_;
};

}  // namespace

ArrivalTrace poisson_trace(const Problem& catalogue, std::size_t count, double mean_gap,
                           std::uint64_t seed) {
  RandomNumbers random(seed);
  ArrivalTrace trace;
  trace.name = fmt::format("{} arrivals, seed {}", count, seed);
  std::map<std::string, int> copies;
  double clock = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) clock -= mean_gap * std::log(1 - random.unit());
    const Model& model = catalogue.model(ModelId{random.below(catalogue.model_count())});
    TraceArrival arrival;
    arrival.model = model.name;
    arrival.name = fmt::format("{} {}", model.name, ++copies[model.name]);
    arrival.time = clock;
    arrival.weight = model.weight;
    trace.arrivals.push_back(std::move(arrival));
  }
  return trace;
}

double mean_time_alone(const Problem& catalogue) {
  double total = 0;
  for (const ModelId model : catalogue.models()) {
    ProblemDraft draft = only_model(catalogue, model);
    if (draft.ops.empty()) continue;
    const Problem alone(std::move(draft));
    const PlannerEntry planner = heft();
    Control control(planner.name, Budget{});
    const double time = planner.plan(alone, Settings{planner.options}, control).value();
    if (time < kInfinity) total += time;
  }
  return total / static_cast<double>(catalogue.model_count());
}

ProblemDraft trace_problem(const Problem& catalogue, const ArrivalTrace& trace) {
  if (trace.arrivals.empty()) throw std::invalid_argument("the trace has no arrivals");
  std::vector<ProblemDraft> drafts;
  std::set<std::string> names;
  for (const TraceArrival& arrival : trace.arrivals) {
    const auto& models = catalogue.draft().models;
    const auto found = std::find_if(models.begin(), models.end(), [&](const Model& model) {
      return model.name == arrival.model;
    });
    if (found == models.end()) {
      throw std::invalid_argument(fmt::format("no model is called '{}'", arrival.model));
    }
    if (!names.insert(arrival.name).second) {
      throw std::invalid_argument(fmt::format("two arrivals are called '{}'", arrival.name));
    }
    if (arrival.cancelled && *arrival.cancelled < arrival.time) {
      throw std::invalid_argument(fmt::format("'{}' is cancelled before it arrives", arrival.name));
    }
    ProblemDraft draft =
        only_model(catalogue, ModelId{static_cast<std::size_t>(found - models.begin())});
    draft.objective = Objective::total_completion;
    draft.models[0] = Model{arrival.name, arrival.time, arrival.weight, arrival.deadline};
    for (Op& op : draft.ops) op.name = arrival.name + "/" + op.name;
    drafts.push_back(std::move(draft));
  }
  ProblemDraft all = joined(std::move(drafts));
  all.name = trace.name;
  return all;
}

Coarsening whole_models(const Problem& problem) {
  Partition partition(problem.op_count());
  for (const OpId op : problem.ops()) partition[op] = CoarseSet{problem.op(op).model.index()};
  return {problem, partition};
}

OnlineRun run_online(const Problem& catalogue, const ArrivalTrace& trace, OnlineMethod method,
                     const OnlineOptions& options) {
  const Problem fine(trace_problem(catalogue, trace));
  const bool whole = options.whole || models_stay_whole(fine);
  const Coarsening packing =
      whole ? whole_models(fine)
            : Coarsening(fine, packed_chains(fine, options.pack_speedup, options.pack_time));
  return OnlineMachine(packing.coarse(), whole, trace, method, options).play();
}

}  // namespace placewright
