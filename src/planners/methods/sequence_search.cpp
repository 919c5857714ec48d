#include "planners/methods/sequence_search.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "coarsen/cut_nodes.h"
#include "evaluate/memory.h"
#include "evaluate/schedule.h"
#include "machine/fan_out.h"
#include "planners/exchange.h"
#include "planners/methods/fill_rules.h"
#include "planners/methods/packing.h"
#include "planners/methods/quick_plans.h"
#include "planners/methods/sweep.h"
#include "planners/random_numbers.h"

namespace placewright {
namespace {

constexpr std::size_t kFirstCycle = 8;  // sweeps
constexpr std::size_t kLongestCycle = 512;
constexpr std::size_t kWholeOps = 2000;
constexpr double kStartShare = 0.15;  // of the time
constexpr std::size_t kLargeOps = 4000;
constexpr std::size_t kOpsOfSection = 500;  // at least
constexpr std::size_t kMostTrials = 1U << 16U;
constexpr double kWindowWarmth = 0.1;
constexpr double kLittleGain = 2e-4;

class Search {
 public:
  Search(const Problem& problem, const SequenceSearch& options, Control& control)
      : problem_(problem),
        control_(control),
        trials_(options.trials),
        warmth_(options.temperature) {}

  Answer run() {
    Answer answer;
    start();
    if (!best_plan_) {
      answer.proved_infeasible = proved_infeasible_;
      answer.reason = reason_;
      return answer;
    }
    improve();
    if (best_.value < best_plan_->value) take(Sweep(problem_, 0).plan_of(best_));
    answer.plan = std::move(best_plan_);
    return answer;
  }

 private:
  void start() {
    if (control_.start != nullptr) {
      take(*control_.start);
    } else {
      start_from_quick_planners();
    }
    if (best_plan_ && !memory_cannot_bind(problem_) && !stop(0)) start_from_packing();
  }

  void start_from_quick_planners() {
    const double most = kStartShare * control_.budget().seconds;
    for (QuickPlan* const quick :
         {best_list, earliest_start_list, best_single_device, fill_evenly, fill_in_turn}) {
      // The first gives a plan whatever it takes; the others are asked while there is time.
      if (best_plan_ && (control_.elapsed() > most || stop(0))) break;
      Control part = control_.part("search", best_plan_ ? most : control_.remaining());
      Answer found = quick(problem_, part);
      if (found.plan) {
        take(std::move(*found.plan));
      } else {
        proved_infeasible_ = proved_infeasible_ || found.proved_infeasible;
        reason_ = found.reason;
      }
    }
  }

  // Where memory binds: the placement of least total time that fits. Greedy planners fill the fast
  // devices with what comes first, not with what gains most there.
  void start_from_packing() {
    PackingCosts costs(problem_);
    for (const GroupId group : problem_.groups()) {
      for (const DeviceId device : problem_.devices()) {
        if (!problem_.group_allowed(group, device)) continue;
        double& cost = costs.at(group, device);
        cost = 0;
        for (const OpId op : problem_.group_ops(group)) cost += problem_.time(op, device);
      }
    }
    Control part = control_.part("packing", 0.2 * control_.remaining());
    const Packing packing = pack(problem_, costs, part);
    if (!packing.placement) return;
    const Placement& placement = *packing.placement;
    if (!memory_fits(problem_, placement)) return;  // the packing knows devices, not memory spaces
    take(schedule_plan(problem_, placement, dispatch(problem_, placement, upward_ranks(problem_))));
  }

  void take(Plan plan) {
    if (best_plan_ && best_plan_->value <= plan.value) return;
    best_plan_ = std::move(plan);
    control_.report(*best_plan_, 0);
  }

  bool stop(std::uint64_t steps) {
    const std::lock_guard guard(mutex_);
    stopped_ = stopped_ || control_.should_stop(steps);
    return stopped_;
  }

  void end() {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
  }

  void improve() {
    if (stop(0)) return;
    std::vector<Sweep> sweeps;
    sweeps.emplace_back(problem_, seed_of(0));
    sweeps.front().start_from(*best_plan_);
    offer(sweeps.front().current());
    if (sweeps.front().has_windows() && problem_.op_count() >= kLargeOps) {
      cool_windows(sweeps);
    } else {
      fan_out(threads(), [&](std::size_t number) {
        if (number == 0) return anneal(sweeps.front());
        Sweep own(problem_, seed_of(number));
        own.start_from(*best_plan_);
        anneal(own);
      });
    }
  }

  [[nodiscard]] std::size_t threads() const {
    return static_cast<std::size_t>(std::max(1, control_.budget().threads));
  }
  [[nodiscard]] std::uint64_t seed_of(std::size_t thread) const {
    return control_.budget().seed * 1000 + thread;
  }
  void fan_out(std::size_t count, const std::function<void(std::size_t)>& work) {
    FanOut{.threads = control_.budget().threads, .on_failure = [this] { end(); }}.run(count, work);
  }

  // Large graphs: the windows one after the other, each by itself, with more moves when a sweep
  // gains little. Each thread has a section of the order, and the borders move from sweep to sweep.
  void cool_windows(std::vector<Sweep>& sweeps) {
    const auto asked = [this](std::uint64_t moves) { return stop(moves); };
    const double temperature = kWindowWarmth * warmth_ * sweeps.front().mean_time();
    const double room = control_.budget().memory / Sweep::bytes(problem_);
    const std::size_t most = std::min(threads(), problem_.op_count() / kOpsOfSection);
    while (sweeps.size() < most && static_cast<double>(sweeps.size()) < room) {
      sweeps.emplace_back(problem_, seed_of(sweeps.size()));
    }
    RandomNumbers random(control_.budget().seed);
    for (std::size_t trials = trials_; !stop(1);) {
      meet_others(sweeps.front());
      const Sequence before = best();
      const auto sections = sweeps.front().sections(sweeps.size(), random.unit() - 0.5);
      fan_out(sections.size(), [&](std::size_t number) {
        sweeps[number].start_from(before);
        sweeps[number].run_section(sections[number], trials, temperature, asked,
                                   Sweep::Cooling::within_windows);
        offer(sweeps[number].current());
      });
      if (sections.size() > 1) join(sections, sweeps);
      if (best().value > (1 - kLittleGain) * before.value) {
        trials = std::min(2 * trials, kMostTrials);
      }
    }
  }

  void join(std::span<const Sweep::Section> sections, std::vector<Sweep>& sweeps) {
    const Sequence joined = Sweep::joined(sections, sweeps);
    if (!memory_fits(problem_, joined.placement)) return;
    sweeps.front().start_from(joined);
    offer(sweeps.front().current());
  }

  // Cycles in which the temperature falls from sweep to sweep, each from the best so far.
  void anneal(Sweep& sweep) {
    const auto asked = [this](std::uint64_t moves) { return stop(moves); };
    std::size_t length = kFirstCycle;
    bool descending = true;
    bool whole = false;
    while (!stop(1)) {
      for (std::size_t i = 0; i < length && !stop(1); ++i) {
        const double left = 1 - static_cast<double>(i + 1) / static_cast<double>(length);
        const double temperature = descending ? 0 : warmth_ * sweep.mean_time() * left * left;
        const double before = sweep.current().value;
        // One large window has as many moves as the small ones together.
        sweep.run(whole ? trials_ * (1 + problem_.op_count() / 48) : trials_, temperature, asked);
        offer(sweep.current());
        if (descending && sweep.current().value >= before * (1 - 1e-4) && i > 0) break;
        if (others_are_better()) break;
      }
      // In turn windows and the whole, while that is not too slow.
      whole = !whole && sweep.memory_binds() && problem_.op_count() <= kWholeOps;
      sweep.look_at_whole(whole);
      if (!descending) length = std::min(2 * length, kLongestCycle);
      descending = false;
      meet_others(sweep);
      sweep.start_from(best());
    }
  }

  [[nodiscard]] double worth_taking() const { return std::min(best_.value, taken_value_); }

  bool others_are_better() {
    if (!control_.exchange) return false;
    const std::lock_guard guard(mutex_);
    return control_.exchange->value() < worth_taking();
  }

  // Takes a better plan of a planner that runs beside this one, or hands ours out.
  void meet_others(Sweep& sweep) {
    if (!control_.exchange) return;
    std::unique_lock lock(mutex_);
    if (const auto other = control_.exchange->better_than(worth_taking())) {
      taken_value_ = other->value;
      lock.unlock();
      sweep.start_from(*other);
      offer(sweep.current());
    } else if (best_.value < control_.exchange->value()) {
      take(sweep.plan_of(best_));
    }
  }

  Sequence best() {
    const std::lock_guard guard(mutex_);
    return best_;
  }

  void offer(const Sequence& sequence) {
    const std::lock_guard guard(mutex_);
    if (sequence.value >= best_.value) return;
    best_ = sequence;
    if (best_.value < best_plan_->value) control_.report(best_.value, 0);
  }

  const Problem& problem_;
  Control& control_;
  std::size_t trials_;
  double warmth_;
  std::optional<Plan> best_plan_;
  bool proved_infeasible_ = false;
  std::string reason_;
  std::mutex mutex_;
  bool stopped_ = false;
  Sequence best_;
  double taken_value_ = kInfinity;  // of the last plan that was taken from another planner
};

}  // namespace

Answer search_sequences(const Problem& problem, Control& control, const SequenceSearch& options) {
  return Search(problem, options, control).run();
}

}  // namespace placewright
