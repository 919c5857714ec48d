#include "analysis/online.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <time.h>

#include "analysis/completion_report.h"
#include "bounds/bounds.h"
#include "coarsen/cut_nodes.h"
#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "planners/flow/chain_groups.h"
#include "planners/flow/flow_rule.h"
#include "planners/flow/model_shares.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/event_run.h"
#include "planners/methods/transient_rule.h"
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
  // Takes over what a rule of the same kind has settled for a problem that shares models with this
  // one: `there` has each model's number in that problem, invalid where it is new.
  virtual void go_on_from(const OnlineRule& /*earlier*/, const Table<ModelId, ModelId>& /*there*/) {
  }
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

  void go_on_from(const OnlineRule& earlier, const Table<ModelId, ModelId>& there) override {
    const auto& other = dynamic_cast<const WholeModelDecisions&>(earlier);
    free_at_ = other.free_at_;
    for (const ModelId model : problem_.models()) {
      if (there[model].valid()) device_of_[model] = other.device_of_[there[model]];
    }
  }

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

  void go_on_from(const OnlineRule& earlier, const Table<ModelId, ModelId>& there) override {
    const auto& other = dynamic_cast<const SharedDecisions&>(earlier);
    for (const ModelId model : problem_.models()) {
      if (there[model].valid()) turn_[model] = other.turn_[there[model]];
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

  void go_on_from(const State& earlier, const Table<ModelId, ModelId>& there) {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      rules_[i]->go_on_from(*earlier.rules_[i], there);
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

void OnlinePlanner::go_on_from(const OnlinePlanner& earlier, const Table<ModelId, ModelId>& there) {
  state_->go_on_from(*earlier.state_, there);
}

std::optional<OnlinePlanner::Decision> OnlinePlanner::decide(const Placement& placement,
                                                             const Schedule& before, double now,
                                                             const Table<ModelId, char>& known) {
  const EventRun* run = state_->decide(placement, before, now, known);
  if (run == nullptr) return std::nullopt;
  return Decision{run->placement(), run->schedule()};
}

namespace {

// The next window takes arrivals of so many ops, or as many arrivals as are not over yet. A
// decision looks at all of them, and each window costs a problem, a check and a bound.
constexpr std::size_t kNextOps = 1024;
// Where all arrivals must be in one problem: more ops would take gigabytes.
constexpr std::size_t kMostArrivingOps = 1'000'000;

void check_trace(const Problem& catalogue, const ArrivalTrace& trace) {
  if (trace.arrivals.empty()) throw std::invalid_argument("the trace has no arrivals");
  std::unordered_set<std::string_view> known;
  for (const ModelId model : catalogue.models()) known.insert(catalogue.model(model).name);
  std::unordered_set<std::string_view> names;
  for (const TraceArrival& arrival : trace.arrivals) {
    if (!known.contains(arrival.model)) {
      throw std::invalid_argument(fmt::format("no model is called '{}'", arrival.model));
    }
    if (!names.insert(arrival.name).second) {
      throw std::invalid_argument(fmt::format("two arrivals are called '{}'", arrival.name));
    }
    if (arrival.cancelled && *arrival.cancelled < arrival.time) {
      throw std::invalid_argument(fmt::format("'{}' is cancelled before it arrives", arrival.name));
    }
  }
}

// The arrivals that matter at some moment as one problem: those that are not over yet and the next
// ones. What has happened to them so far is kept here.
class Window {
 public:
  // `numbers`: of the arrivals in the whole trace, ascending.
  Window(const Problem& catalogue, const ArrivalTrace& trace, std::vector<std::size_t> numbers,
         OnlineMethod method, const OnlineOptions& options)
      : numbers_(std::move(numbers)),
        arrivals_(part_of(trace, numbers_)),
        problem_(trace_problem(catalogue, arrivals_)),
        planner_(problem_, method, options),
        placement_(problem_.op_count()),
        known_(problem_.model_count(), 0),
        cancelled_(problem_.model_count(), 0) {
    schedule_.start.assign(problem_.op_count(), 0);
    schedule_.end.assign(problem_.op_count(), 0);
    std::vector<std::pair<ModelId, OpId>> pairs;
    for (const OpId op : problem_.ops()) pairs.emplace_back(problem_.op(op).model, op);
    ops_ = Rows<ModelId, OpId>::from_pairs(problem_.model_count(), pairs);
  }

  // What happened to the arrivals that both have, and what is planned for them.
  void go_on_from(const Window& earlier) {
    Table<ModelId, ModelId> there(problem_.model_count());
    Table<TensorId, TensorId> here(earlier.problem_.tensor_count());
    for (const ModelId model : problem_.models()) {
      const auto found = std::ranges::lower_bound(earlier.numbers_, numbers_[model.index()]);
      if (found == earlier.numbers_.end() || *found != numbers_[model.index()]) continue;
      there[model] = ModelId{static_cast<std::size_t>(found - earlier.numbers_.begin())};
      cancelled_[model] = earlier.cancelled_[there[model]];
      // Copies of one model have the same ops and tensors in the same order.
      for (std::size_t i = 0; i < ops_[model].size(); ++i) {
        const OpId op = ops_[model][i];
        const OpId before = earlier.ops_[there[model]][i];
        placement_[op] = earlier.placement_[before];
        schedule_.start[op] = earlier.schedule_.start[before];
        schedule_.end[op] = earlier.schedule_.end[before];
        const auto tensors = problem_.outputs(op);
        for (std::size_t j = 0; j < tensors.size(); ++j) {
          here[earlier.problem_.outputs(before)[j]] = tensors[j];
        }
      }
    }
    for (Transfer transfer : earlier.schedule_.transfers) {
      transfer.tensor = here[transfer.tensor];
      if (transfer.tensor.valid()) schedule_.transfers.push_back(transfer);
    }
    planner_.go_on_from(earlier.planner_, there);
  }

  // False if no device has room for an op.
  bool plan_again(double moment, bool whole) {
    for (const ModelId model : problem_.models()) {
      const TraceArrival& arrival = arrivals_.arrivals[model.index()];
      const bool gone = arrival.cancelled && *arrival.cancelled <= moment;
      known_[model] = arrival.time <= moment && !gone;
      if (arrival.cancelled == moment) cancel(model, moment, whole);
    }
    const auto decision = planner_.decide(placement_, schedule_, moment, known_);
    if (!decision) return false;
    placement_ = decision->placement;
    schedule_ = decision->schedule;
    return true;
  }

  [[nodiscard]] std::size_t planned_ops(double moment) const {
    return static_cast<std::size_t>(std::ranges::count_if(problem_.ops(), [&](OpId op) {
      return known_[problem_.op(op).model] && schedule_.start[op] >= moment;
    }));
  }

  // Whether nothing of each model is running, being sent or to come.
  [[nodiscard]] Table<ModelId, char> over(double moment) const {
    Table<ModelId, char> over(problem_.model_count(), 1);
    for (const OpId op : problem_.ops()) {
      const ModelId model = problem_.op(op).model;
      const bool ended = started(op) && schedule_.end[op] <= moment;
      if (!ended && (started(op) || !cancelled_[model])) over[model] = 0;
    }
    for (const Transfer& transfer : schedule_.transfers) {
      const OpId producer = problem_.producer(transfer.tensor);
      if (transfer.end > moment) over[problem_.op(producer).model] = 0;
    }
    return over;
  }

  [[nodiscard]] std::size_t number(ModelId model) const { return numbers_[model.index()]; }
  [[nodiscard]] const Problem& problem() const { return problem_; }

  // Of a model that is over.
  [[nodiscard]] OnlineModel outcome(ModelId model) const {
    const TraceArrival& arrival = arrivals_.arrivals[model.index()];
    OnlineModel outcome{.complete = cancelled_[model] == 0, .completion = arrival.time};
    for (const OpId op : ops_[model]) {
      if (started(op)) outcome.completion = std::max(outcome.completion, schedule_.end[op]);
    }
    outcome.late = outcome.complete && arrival.deadline && outcome.completion > *arrival.deadline;
    return outcome;
  }

  // What has run and is planned, as a plan of what was there to be run; nullopt if that is nothing.
  // Models that are not `counted` have the weight 0, but what they ran took its time.
  [[nodiscard]] std::optional<OnlineSchedule> done(const Table<ModelId, char>& counted,
                                                   bool whole) const {
    ProblemDraft draft = problem_.draft();
    std::vector<OpId> kept;
    Table<OpId, OpId> number(problem_.op_count());
    draft.ops.clear();
    for (const OpId op : problem_.ops()) {
      if (!started(op)) continue;
      number[op] = OpId{kept.size()};
      kept.push_back(op);
      draft.ops.push_back(as_run(op, whole));
    }
    if (kept.empty()) return std::nullopt;
    keep_only(draft, number);
    for (const ModelId model : problem_.models()) {
      if (!counted[model]) draft.models[model.index()].weight = 0;
    }
    Problem problem(std::move(draft));
    Plan plan = plan_of(problem, kept, number);
    return OnlineSchedule{std::move(problem), std::move(plan)};
  }

 private:
  static ArrivalTrace part_of(const ArrivalTrace& trace, const std::vector<std::size_t>& numbers) {
    ArrivalTrace part{.name = trace.name, .arrivals = {}};
    for (const std::size_t number : numbers) part.arrivals.push_back(trace.arrivals[number]);
    return part;
  }

  // Too late for a model whose last op has ended. What has not started never will (OnlinePlanner),
  // what runs is stopped if the model is `whole`.
  void cancel(ModelId model, double moment, bool whole) {
    for (const OpId op : ops_[model]) {
      if (started(op) && schedule_.end[op] <= moment) continue;
      cancelled_[model] = 1;
      if (whole && started(op)) schedule_.end[op] = moment;
    }
  }

  [[nodiscard]] bool started(OpId op) const { return placement_[op].valid(); }

  // The op as it ran: one that was stopped took no longer than until then.
  [[nodiscard]] Op as_run(OpId op, bool whole) const {
    Op run = problem_.op(op);
    if (!whole || !cancelled_[run.model]) return run;
    const double length = schedule_.end[op] - schedule_.start[op];
    for (double& time : run.time) {
      if (time != kUnsupported) time = std::min(time, length);
    }
    return run;
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

  [[nodiscard]] Plan plan_of(const Problem& done, const std::vector<OpId>& kept,
                             const Table<OpId, OpId>& number) const {
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
    return schedule_plan(done, std::move(placement), std::move(schedule));
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

  std::vector<std::size_t> numbers_;
  ArrivalTrace arrivals_;
  Problem problem_;
  OnlinePlanner planner_;
  Rows<ModelId, OpId> ops_;
  Placement placement_;  // of what has begun, and of what is planned to
  Schedule schedule_;
  Table<ModelId, char> known_;
  Table<ModelId, char> cancelled_;  // before its last op had ended
};

// Plays a trace, one window after the other.
class OnlineMachine {
 public:
  // `whole`: every model of the catalogue is one op, which can be stopped. `at_once`: all arrivals
  // are in one window.
  OnlineMachine(const Problem& catalogue, bool whole, bool at_once, const ArrivalTrace& trace,
                OnlineMethod method, const OnlineOptions& options)
      : catalogue_(catalogue),
        whole_(whole),
        trace_(trace),
        method_(method),
        options_(options),
        least_window_(at_once ? trace.arrivals.size() : arrivals_of(catalogue, kNextOps)),
        coming_(trace.arrivals.size()) {
    std::iota(coming_.begin(), coming_.end(), std::size_t{0});
    std::ranges::stable_sort(coming_, {}, [&](std::size_t i) { return trace.arrivals[i].time; });
  }

  OnlineRun play() {
    std::set<double> moments;
    for (const TraceArrival& arrival : trace_.arrivals) {
      moments.insert(arrival.time);
      if (arrival.cancelled) moments.insert(*arrival.cancelled);
    }
    result_.models.resize(trace_.arrivals.size());
    std::vector<double> latencies;
    std::vector<double> processor_times;
    for (const double moment : moments) {
      if (has_come(moment)) open_window(moment);
      const auto begin = std::chrono::steady_clock::now();
      const double processor_begin = thread_seconds();
      if (!window_->plan_again(moment, whole_)) {
        result_.fault = fmt::format("no device has room for the ops at {}", moment);
        return std::move(result_);
      }
      processor_times.push_back(thread_seconds() - processor_begin);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      latencies.push_back(taken.count());
      result_.planned_ops += window_->planned_ops(moment);
    }
    close_window(kInfinity);
    result_.decisions = moments.size();
    result_.latency = decision_time(latencies);
    result_.processor = decision_time(processor_times);
    for (std::size_t i = 0; i < trace_.arrivals.size(); ++i) {
      const OnlineModel& model = result_.models[i];
      const TraceArrival& arrival = trace_.arrivals[i];
      if (!model.complete) continue;
      result_.total_completion += arrival.weight * (model.completion - arrival.time);
    }
    return std::move(result_);
  }

 private:
  // How many have about so many ops.
  static std::size_t arrivals_of(const Problem& catalogue, std::size_t ops) {
    return 1 + ops * catalogue.model_count() / std::max<std::size_t>(1, catalogue.op_count());
  }

  // Whether the next window begins now at the latest.
  [[nodiscard]] bool has_come(double moment) const {
    return next_ < coming_.size() && trace_.arrivals[coming_[next_]].time <= moment;
  }

  void open_window(double moment) {
    std::vector<std::size_t> numbers = window_ ? close_window(moment) : std::vector<std::size_t>{};
    const std::size_t wanted = std::max(least_window_, numbers.size());
    for (std::size_t taken = 0; next_ < coming_.size() && (taken < wanted || has_come(moment));
         ++taken) {
      numbers.push_back(coming_[next_++]);
    }
    std::ranges::sort(numbers);
    auto window =
        std::make_unique<Window>(catalogue_, trace_, std::move(numbers), method_, options_);
    if (window_) window->go_on_from(*window_);
    window_ = std::move(window);
  }

  // The arrivals that are not over. Each of the others counts in the window in which it ends.
  //
  // The verifier sees all windows as they are then planned to the end. Of two ops or transfers of
  // which one is in no later window, it is over before anything begins that is new in one: so all
  // that could be in each other's way is checked. Nor can the parts of the lower bound be more than
  // the whole: each leaves out what other windows count, and the work of all others.
  std::vector<std::size_t> close_window(double moment) {
    const Problem& problem = window_->problem();
    Table<ModelId, char> counted = window_->over(moment);
    std::vector<std::size_t> left;
    for (const ModelId model : problem.models()) {
      if (!counted[model]) {
        left.push_back(window_->number(model));
        continue;
      }
      OnlineModel& outcome = result_.models[window_->number(model)];
      outcome = window_->outcome(model);
      counted[model] = outcome.complete ? 1 : 0;
    }
    std::optional<OnlineSchedule> done = window_->done(counted, whole_);
    if (!done) return left;
    result_.lower_bound += best_lower_bound(done->problem).lower_bound;
    const auto violations = verify(done->problem, done->plan);
    if (!violations.empty() && result_.fault.empty()) result_.fault = violations.front().message;
    if (problem.model_count() == trace_.arrivals.size()) result_.schedule = std::move(done);
    return left;
  }

  const Problem& catalogue_;
  bool whole_;
  const ArrivalTrace& trace_;
  OnlineMethod method_;
  const OnlineOptions& options_;
  std::size_t least_window_;
  std::vector<std::size_t> coming_;  // arrivals in order of time
  std::size_t next_ = 0;             // of them
  std::unique_ptr<Window> window_;
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
  check_trace(catalogue, trace);
  std::unordered_map<std::string_view, ModelId> numbers;
  for (const ModelId model : catalogue.models()) {
    numbers.emplace(catalogue.model(model).name, model);
  }
  std::unordered_map<std::string_view, ProblemDraft> alone;  // by model
  std::vector<ProblemDraft> drafts;
  for (const TraceArrival& arrival : trace.arrivals) {
    auto [found, first] = alone.try_emplace(arrival.model);
    if (first) found->second = only_model(catalogue, numbers.at(arrival.model));
    ProblemDraft draft = found->second;
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
  check_trace(catalogue, trace);
  std::vector<std::size_t> copies(catalogue.model_count(), 0);
  std::size_t ops = 0;
  for (const TraceArrival& arrival : trace.arrivals) {
    const auto& models = catalogue.draft().models;
    const auto found = std::ranges::find(models, arrival.model, &Model::name);
    ++copies[static_cast<std::size_t>(found - models.begin())];
  }
  for (const OpId op : catalogue.ops()) ops += copies[catalogue.op(op).model.index()];
  // What has come stays in memory, so that where this may matter nothing can be forgotten.
  const bool at_once =
      options.one_window ||
      !memory_cannot_bind(catalogue, static_cast<double>(*std::ranges::max_element(copies)));
  if (at_once && ops > kMostArrivingOps) {
    throw std::invalid_argument(
        fmt::format("the arrivals bring {} ops; the most is {} where memory is limited", ops,
                    kMostArrivingOps));
  }
  const bool whole = options.whole || models_stay_whole(catalogue);
  const Coarsening packing =
      whole ? whole_models(catalogue)
            : Coarsening(catalogue,
                         packed_chains(catalogue, options.pack_speedup, options.pack_time));
  return OnlineMachine(packing.coarse(), whole, at_once, trace, method, options).play();
}

}  // namespace placewright
