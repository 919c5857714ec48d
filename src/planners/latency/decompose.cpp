// Cut-node decomposition: exact where it ends in time, a plan and a bound at any moment before.
//
// Cut nodes (coarsen/cut_nodes.h) split the problem into modules that share nothing but the device
// of the cut node between them. With t(m, a, b) = the least time from the end of module m's entry
// on a to the end of its exit on b,
//
//   latency = arrival + min over devices d0, d1, ... of the sum over modules of t(m, d(m-1), d(m)),
//
// a shortest path. The t(m, a, b) are found by a PassageSearch, and only those that matter: each
// has a lower bound (at first paths and work) and the best schedule seen. The shortest path over
// the lower bounds says which to look at next; what lies on no path below the best plan is never
// looked at. A search starts narrow and is repeated wider until it is a proof, so that good plans
// come early. Modules are independent: threads share the work. Equal ones are looked at once, so
// that a thousand equal layers of a transformer are hardly more work than two. Where very many
// differ, some are looked at before the shortest paths are found again, which takes longer than the
// search of a module then, and their first lower bounds are those of paths and work alone.
//
// Devices that work for themselves: inside a module a precedence-tree enumeration with cut-set
// dominance (Demeulemeester, Herroelen: Management Science 38(12), 1992), layer by layer
// (module_search.h). Exact when devices have no cut overheads and resident memory cannot bind (or
// the problem has at most 64 ops and no shared weights: then it is one module, with memory).
// Otherwise the modules are a relaxation: the bound holds, and the plan is the best of what the
// modules' schedules make and the start.
//
// Devices that share resources, as sets of cores do: inside a module local search and CP-SAT
// (module_program.h). Exact with cut overheads too, by device or by tensor: nothing runs beside a
// cut node, so that what it spends on handing out its tensors delays the module behind it and
// nothing else, and what it spends on taking them in is in its own module. Devices that differ in
// name only are looked at once (device_symmetry.h). All devices must be in one memory space;
// elsewhere ports and transfers would be part of a module. A graph without cut nodes is left to
// `cpsat`.
//
// More than 16 devices, and modules of more than 64 ops, are refused: on the 31 sets of 16 cores
// `search` has better plans in the time that the modules would take.

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "bounds/segments.h"
#include "coarsen/cut_nodes.h"
#include "evaluate/memory.h"
#include "evaluate/schedule.h"
#include "machine/fan_out.h"
#include "planners/exchange.h"
#include "planners/latency/device_symmetry.h"
#include "planners/latency/latency.h"
#include "planners/latency/module_program.h"
#include "planners/latency/module_search.h"
#include "solvers/cp_sat.h"

namespace placewright {
namespace {

constexpr std::uint64_t kStartMoves = 80;      // of local search before the modules, for each op
constexpr std::size_t kModulesPerChoice = 32;  // of so many modules one is looked at, then paths
constexpr std::size_t kManyModules = 256;
constexpr std::uint64_t kMoreStartMoves = 1000;  // of many modules, and where devices share
constexpr double kStartShare = 0.5;              // of the time
constexpr double kSecondsPerPassage = 1.5e-8;    // of an edge between devices, through a module
constexpr std::size_t kFirstWidth = 8;
constexpr std::size_t kWidthGrowth = 4;
constexpr double kIndifference = 5e-7;  // paths this close to the best plan are not looked at

// One way through a module.
struct Passage {
  double lower = kInfinity;
  double upper = kInfinity;
  ModuleItems items;
  std::size_t width = 0;   // of the last search
  bool exhausted = false;  // no wider search is possible
  bool busy = false;
};

ModuleItems on_images(ModuleItems items, const DeviceExchange& symmetry) {
  for (ModuleItem& item : items) {
    item.device = static_cast<std::uint8_t>(symmetry[DeviceId{item.device}].index());
  }
  return items;
}

DeviceExchange inverse(const DeviceExchange& symmetry) {
  DeviceExchange back(symmetry.size());
  for (const DeviceId device : symmetry.keys()) back[symmetry[device]] = device;
  return back;
}

// A module and its passages by device of entry and exit; one column where there is no entry or
// exit. Equal modules share their passages, and so do devices that differ in name only: what is
// known of a passage is told of its representative.
struct Part {
  std::unique_ptr<const SearchableModule> module;
  const DeviceSymmetry* symmetry;
  OpId entry;  // not valid: none
  OpId exit;   // not valid: none
  std::size_t entries;
  std::size_t exits;
  std::shared_ptr<std::vector<Passage>> passages;

  // One end stands for both where there is only one.
  [[nodiscard]] DeviceSymmetry::Pair ends(std::size_t from, std::size_t to) const {
    return {DeviceId{entry.valid() ? from : to}, DeviceId{exit.valid() ? to : from}};
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> representative(std::size_t from,
                                                                   std::size_t to) const {
    const DeviceSymmetry::Pair pair = symmetry->representative(ends(from, to));
    return {entry.valid() ? pair.first.index() : 0, exit.valid() ? pair.second.index() : 0};
  }
  [[nodiscard]] bool stands_for_itself(std::size_t from, std::size_t to) const {
    return representative(from, to) == std::pair(from, to);
  }

  [[nodiscard]] Passage& at(std::size_t from, std::size_t to) const {
    const auto [first, last] = representative(from, to);
    return (*passages)[first * exits + last];
  }
  // On the devices of the representative.
  [[nodiscard]] std::unique_ptr<PassageSearch> search(std::size_t from, std::size_t to) const {
    const auto [first, last] = representative(from, to);
    return module->search(first, last);
  }
  // The best schedule known, on its own devices.
  [[nodiscard]] ModuleItems items(std::size_t from, std::size_t to) const {
    return on_images(at(from, to).items, symmetry->way_to(ends(from, to)));
  }
  void offer(std::size_t from, std::size_t to, double value, ModuleItems items) const {
    Passage& passage = at(from, to);
    if (value >= passage.upper) return;
    passage.upper = value;
    passage.items = on_images(std::move(items), inverse(symmetry->way_to(ends(from, to))));
  }
};

class Decomposition {
 public:
  Decomposition(const Problem& problem, Control& control)
      : problem_(problem), control_(control), shares_(problem.has_sharing()), symmetry_(problem) {
    const bool binds = !memory_cannot_bind(problem);
    std::vector<CutSegment> split = cut_segments(problem);
    if (!shares_ && binds && problem.shared_weight_count() == 0 &&
        problem.op_count() <= Module::kMaxOps) {
      CutSegment whole;
      whole.ops.assign(problem.topological_order().begin(), problem.topological_order().end());
      split = {std::move(whole)};
      with_memory_ = true;
    }
    exact_ = (shares_ || !problem.has_overheads()) && (!binds || with_memory_);
    for (const CutSegment& segment : split) {
      if (control_.should_stop()) break;
      add_part(segment);
    }
    if (parts_.size() == split.size() && bound_passages()) return;
    parts_.clear();
    distinct_.clear();
    distinct_ops_ = problem.op_count();
  }

  Answer run() {
    start();
    if (!parts_.empty()) search();
    if (exact_ && (!best_ || path_value_ < best_->value)) offer_path();
    return finish();
  }

 private:
  struct Distinct {
    std::size_t part;  // the first that is like this
    CutSegment segment;
  };
  struct Choice {
    std::size_t part;
    std::size_t entry;
    std::size_t exit;
    double cutoff;
    std::size_t width_before;
    std::size_t width;
  };
  using Distances = std::vector<std::vector<double>>;  // boundary x device

  // Repeated modules, as the layers of a transformer, are looked at once.
  [[nodiscard]] bool many() const { return distinct_.size() > kManyModules; }

  [[nodiscard]] std::unique_ptr<const SearchableModule> module_of(const CutSegment& segment) const {
    if (shares_) return std::make_unique<ProgrammedModule>(problem_, segment);
    return std::make_unique<CompiledModule>(problem_, segment, with_memory_);
  }

  void add_part(const CutSegment& segment) {
    Part part{.module = module_of(segment),
              .symmetry = &symmetry_,
              .entry = segment.entry,
              .exit = segment.exit,
              .entries = segment.entry.valid() ? problem_.device_count() : 1,
              .exits = segment.exit.valid() ? problem_.device_count() : 1,
              .passages = nullptr};
    auto& known = known_[part.module->signature()];
    if (known == nullptr) {
      known = std::make_shared<std::vector<Passage>>(part.entries * part.exits);
      distinct_.push_back({parts_.size(), segment});
      distinct_ops_ += segment.ops.size();
    }
    part.passages = known;
    parts_.push_back(std::move(part));
  }

  // The first lower bounds; false if there is no time for them.
  bool bound_passages() {
    double edges = 0;
    for (const auto& [index, segment] : distinct_) {
      for (const OpId op : segment.ops) {
        edges += 1 + static_cast<double>(problem_.predecessors(op).size());
      }
    }
    const auto devices = static_cast<double>(problem_.device_count());
    const double seconds = kSecondsPerPassage * edges * devices * devices * devices;
    if (!control_.cannot_afford(seconds, 0).empty()) return false;
    for (const auto& [index, segment] : distinct_) {
      if (control_.should_stop()) return false;
      bound_passages_of(parts_[index], segment);
    }
    return true;
  }

  void bound_passages_of(const Part& part, const CutSegment& segment) const {
    const auto wanted = [&](std::size_t entry, std::size_t exit) {
      return part.stands_for_itself(entry, exit);
    };
    const std::vector<double> least = segment_times(problem_, segment, wanted);
    for (std::size_t entry = 0; entry < part.entries; ++entry) {
      for (std::size_t exit = 0; exit < part.exits; ++exit) {
        if (!wanted(entry, exit)) continue;
        Passage& passage = part.at(entry, exit);
        passage.lower = least[entry * part.exits + exit];
        if (many() || passage.lower == kInfinity) continue;
        const std::unique_ptr<PassageSearch> search = part.search(entry, exit);
        passage.lower = std::max(passage.lower, search->root_bound());
        if (passage.lower == kInfinity) continue;
        ModuleItems items = search->simple_items();
        if (items.empty()) continue;
        const double value = search->value_of(items);
        part.offer(entry, exit, value, std::move(items));
      }
    }
  }

  // The plan given, and one by a short search; of many modules few will be looked at, so that the
  // search is worth half of the time.
  void start() {
    if (control_.start != nullptr) offer(*control_.start);
    Budget budget = control_.budget();
    budget.seconds = (many() ? kStartShare : 1) * control_.remaining();
    const std::uint64_t moves = many() || shares_ ? kMoreStartMoves : kStartMoves;
    budget.steps = std::min<std::uint64_t>(budget.steps, moves * distinct_ops_);
    Control part("search", budget, control_.interruption());
    part.start = control_.start;
    const PlannerEntry quick = placewright::search();
    Answer found = quick.plan(problem_, Settings{quick.options}, part);
    if (found.plan) offer(std::move(*found.plan));
    proved_infeasible_ = found.proved_infeasible;
    reason_ = found.reason;
    if (best_ && exact_) split(*best_);
  }

  // What a whole plan does in each module is a schedule of that module.
  void split(const Plan& plan) {
    Table<TensorId, std::vector<const Transfer*>> transfers(problem_.tensor_count());
    for (const Transfer& transfer : plan.schedule->transfers) {
      transfers[transfer.tensor].push_back(&transfer);
    }
    std::size_t entry = 0;
    for (const Part& part : parts_) {
      const std::size_t exit = part.exit.valid() ? plan.placement[part.exit].index() : 0;
      const std::unique_ptr<PassageSearch> search = part.module->search(entry, exit);
      ModuleItems items = search->items_of(plan, transfers);
      const double value = search->value_of(items);
      part.offer(entry, exit, value, std::move(items));
      entry = exit;
    }
  }

  void offer(Plan plan) {
    if (best_ && best_->value <= plan.value) return;
    best_ = std::move(plan);
    if (exact_) value_ = std::min(value_, best_->value);
    const std::lock_guard guard(control_mutex_);
    control_.report(*best_, lower_bound_);
  }

  void search() {
    update_distances();
    const int threads = std::max(1, control_.budget().threads);
    FanOut{.threads = threads, .on_failure = [this] { end(); }}.run(
        static_cast<std::size_t>(threads), [this](std::size_t) { work(); });
    find_paths();
  }

  void end() {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    idle_.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      const std::optional<Choice> choice = next();
      if (!choice) {
        if (busy_ == 0) return;
        idle_.wait(lock);
        continue;
      }
      const Part& part = parts_[choice->part];
      Passage& passage = part.at(choice->entry, choice->exit);
      passage.busy = true;
      ++busy_;
      lock.unlock();
      const ModuleResult result =
          part.search(choice->entry, choice->exit)
              ->run({.at_least = passage.lower,
                     .cutoff = choice->cutoff,
                     .known = &passage.items,
                     .width = choice->width},
                    {.should_stop = [this](auto steps) { return should_stop(steps); },
                     .seconds_left = [this] { return control_.remaining(); },
                     .seed = control_.budget().seed,
                     .interruption = control_.interruption()});
      lock.lock();
      --busy_;
      passage.busy = false;
      take_over(part, passage, *choice, result);
      const double known = best_ ? best_->value : kInfinity;
      if (const auto other = better_elsewhere(control_.exchange, known)) offer(*other);
      idle_.notify_all();
    }
  }

  bool should_stop(std::uint64_t steps) {
    const std::lock_guard guard(control_mutex_);
    if (!stopped_ && control_.should_stop(steps)) stopped_ = true;
    return stopped_;
  }

  void report(double value, double lower_bound) {
    const std::lock_guard guard(control_mutex_);
    control_.report(value, lower_bound);
  }

  void take_over(const Part& part, Passage& passage, const Choice& choice,
                 const ModuleResult& result) {
    passage.width = choice.width;
    // What is best but for rounding will not be better by more work. Where nothing was found below
    // the cutoff, an equal module elsewhere may ask with a higher one.
    passage.exhausted = result.complete ? result.value <= choice.cutoff * (1 + 2 * kIndifference)
                                        : choice.width >= part.module->widest();
    passage.lower = std::max(passage.lower, result.lower_bound);
    if (result.value < passage.upper) {
      passage.upper = result.value;
      passage.items = result.items;
    }
    paths_are_old_ = true;
    if (chosen_.empty()) find_paths();
  }

  // Over what is known by now.
  void find_paths() {
    if (!std::exchange(paths_are_old_, false)) return;
    update_distances();
    improve_plan();
  }

  // Shortest distances over the lower bounds, from the beginning and from the end.
  void update_distances() {
    from_begin_.assign(1, {0.0});
    for (const Part& part : parts_) {
      std::vector<double> next(part.exits, kInfinity);
      for (std::size_t entry = 0; entry < part.entries; ++entry) {
        for (std::size_t exit = 0; exit < part.exits; ++exit) {
          next[exit] = std::min(next[exit], from_begin_.back()[entry] + part.at(entry, exit).lower);
        }
      }
      from_begin_.push_back(std::move(next));
    }
    to_end_.assign(parts_.size() + 1, {});
    to_end_.back().assign(from_begin_.back().size(), 0.0);
    for (std::size_t m = parts_.size(); m-- > 0;) {
      const Part& part = parts_[m];
      to_end_[m].assign(part.entries, kInfinity);
      for (std::size_t entry = 0; entry < part.entries; ++entry) {
        for (std::size_t exit = 0; exit < part.exits; ++exit) {
          to_end_[m][entry] =
              std::min(to_end_[m][entry], part.at(entry, exit).lower + to_end_[m + 1][exit]);
        }
      }
    }
    const double bound = to_end_[0][0];
    if (bound > lower_bound_) {
      lower_bound_ = bound;
      report(best_ ? best_->value : kInfinity, std::min(bound, value_));
    }
  }

  // The shortest path over the schedules seen, as a plan.
  void improve_plan() {
    std::vector<std::vector<double>> distance(1, {0.0});
    std::vector<std::vector<std::size_t>> came_from(1);
    for (const Part& part : parts_) {
      distance.emplace_back(part.exits, kInfinity);
      came_from.emplace_back(part.exits, 0);
      const std::vector<double>& before = distance[distance.size() - 2];
      for (std::size_t entry = 0; entry < part.entries; ++entry) {
        for (std::size_t exit = 0; exit < part.exits; ++exit) {
          const double through = before[entry] + part.at(entry, exit).upper;
          if (through >= distance.back()[exit]) continue;
          distance.back()[exit] = through;
          came_from.back()[exit] = entry;
        }
      }
    }
    const auto last = std::min_element(distance.back().begin(), distance.back().end());
    if (*last >= path_value_) return;
    path_value_ = *last;
    value_ = exact_ ? std::min(value_, *last) : *last;
    std::vector<std::size_t> exits(parts_.size());
    std::size_t exit = static_cast<std::size_t>(last - distance.back().begin());
    for (std::size_t m = parts_.size(); m-- > 0;) {
      exits[m] = exit;
      exit = came_from[m + 1][exit];
    }
    path_exits_ = std::move(exits);
    if (exact_) {
      report(value_, std::min(lower_bound_, value_));
    } else {
      offer_path();
    }
  }

  void offer_path() {
    if (path_exits_.empty()) return;
    Plan plan = plan_along(path_exits_);
    if (exact_ || memory_fits(problem_, plan.placement)) offer(std::move(plan));
  }

  [[nodiscard]] Plan plan_along(const std::vector<std::size_t>& exits) const {
    Plan plan;
    plan.placement = Placement(problem_.op_count());
    plan.schedule.emplace();
    plan.schedule->start.assign(problem_.op_count(), 0);
    plan.schedule->end.assign(problem_.op_count(), 0);
    double origin = 0;
    std::size_t entry = 0;
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      const Part& part = parts_[m];
      origin =
          part.module->search(entry, exits[m])->replay(part.items(entry, exits[m]), origin, plan);
      entry = exits[m];
    }
    Schedule schedule = retime(problem_, plan.placement, *plan.schedule);
    return schedule_plan(problem_, std::move(plan.placement), std::move(schedule));
  }

  // The next of the chosen passages; equal modules may have made it known meanwhile.
  std::optional<Choice> next() {
    while (true) {
      if (chosen_.empty()) {
        find_paths();
        chosen_ = choose();
      }
      if (chosen_.empty()) return std::nullopt;
      const Choice choice = chosen_.back();
      chosen_.pop_back();
      const Passage& passage = parts_[choice.part].at(choice.entry, choice.exit);
      if (!passage.busy && passage.width == choice.width_before) return choice;
    }
  }

  // Passages that a wider search should look at next: those looked at least on the path of the best
  // schedules (to improve the plan) or on the shortest path over the lower bounds (to raise the
  // bound); else any that may lie on a path below the best plan.
  [[nodiscard]] std::vector<Choice> choose() const {
    std::vector<Choice> on_bound;
    std::vector<Choice> on_plan;
    std::vector<Choice> anywhere;
    const std::size_t most = 1 + parts_.size() / kModulesPerChoice;
    const double limit = value_ * (1 - kIndifference);
    for (std::size_t m = 0; m < parts_.size(); ++m) {
      const Part& part = parts_[m];
      for (std::size_t entry = 0; entry < part.entries; ++entry) {
        for (std::size_t exit = 0; exit < part.exits; ++exit) {
          const Passage& passage = part.at(entry, exit);
          if (passage.busy || passage.exhausted || passage.lower == kInfinity) continue;
          if (passage.lower >= passage.upper * (1 - kIndifference)) continue;
          const double rest = from_begin_[m][entry] + to_end_[m + 1][exit];
          if (rest + passage.lower >= limit) continue;
          const std::size_t width =
              std::min(part.module->widest(),
                       passage.width == 0 ? kFirstWidth : passage.width * kWidthGrowth);
          const Choice choice{
              m, entry, exit, std::min(passage.upper, value_ - rest), passage.width, width};
          const auto consider = [&](std::vector<Choice>& best) {
            if (!best.empty() && width < best.front().width) best.clear();
            const bool as_wide = best.empty() || width == best.front().width;
            if (as_wide && best.size() < most) best.push_back(choice);
          };
          consider(anywhere);
          if (rest + passage.lower <= to_end_[0][0] * (1 + 1e-12)) consider(on_bound);
          if (!path_exits_.empty() && exit == path_exits_[m] &&
              entry == (m == 0 ? 0 : path_exits_[m - 1])) {
            consider(on_plan);
          }
        }
      }
    }
    if (on_bound.empty()) return on_plan.empty() ? anywhere : on_plan;
    if (on_plan.empty()) return on_bound;
    return on_plan.front().width <= on_bound.front().width ? on_plan : on_bound;
  }

  Answer finish() {
    Answer answer;
    if (lower_bound_ == kInfinity) {
      answer.proved_infeasible = true;
      answer.reason = "no placement keeps links, pins and supported devices";
    }
    if (best_) {
      answer.plan = std::move(best_);
      answer.proved_infeasible = false;
    } else {
      answer.proved_infeasible |= proved_infeasible_;
      if (answer.reason.empty()) answer.reason = reason_;
    }
    answer.certificate.lower_bound = safe_sum(std::min(lower_bound_, answer.value()));
    answer.certificate.method =
        parts_.size() == 1 ? "search of the whole problem as one module"
                           : fmt::format("cut-node decomposition into {} modules", parts_.size());
    return answer;
  }

  const Problem& problem_;
  Control& control_;
  bool shares_;
  DeviceSymmetry symmetry_;
  bool with_memory_ = false;
  bool exact_ = false;
  std::vector<Part> parts_;
  std::vector<Distinct> distinct_;
  std::size_t distinct_ops_ = 0;
  std::unordered_map<std::string, std::shared_ptr<std::vector<Passage>>> known_;

  std::optional<Plan> best_;
  double value_ = kInfinity;       // exact: of the best plan; relaxed: of the best path
  double path_value_ = kInfinity;  // of the best path over schedules seen
  double lower_bound_ = 0;
  bool proved_infeasible_ = false;
  std::string reason_;

  std::vector<std::size_t> path_exits_;  // of the best path over schedules seen
  std::vector<Choice> chosen_;           // by the distances, and still to be looked at
  bool paths_are_old_ = false;
  Distances from_begin_;
  Distances to_end_;
  std::mutex mutex_;
  std::mutex control_mutex_;
  std::condition_variable idle_;
  int busy_ = 0;
  std::atomic<bool> stopped_ = false;
};

// Where devices share.
std::string refuses_sharing(const Problem& problem) {
  if (problem.space_count() > 1) {
    return "where devices share resources or memory, it knows one memory space for all devices";
  }
  if (cut_nodes(problem).empty()) {
    return "no op cuts the graph in two, so that it is one module, for which there is `cpsat`";
  }
  return solvers::cp_sat_available() ? std::string{} : solvers::cp_sat_load_error();
}

std::string refuses(const Problem& problem) {
  if (problem.device_count() > Module::kMaxDevices) return "it handles at most 16 devices";
  if (std::string refusal = too_wide_for_decompose(problem); !refusal.empty()) return refusal;
  return problem.has_sharing() ? refuses_sharing(problem) : std::string{};
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return Decomposition(problem, control).run();
}

}  // namespace

std::string too_wide_for_decompose(const Problem& problem) {
  for (const CutSegment& segment : cut_segments(problem)) {
    if (segment.ops.size() > Module::kMaxOps) {
      return fmt::format("cut nodes leave a part with {} ops, and it handles at most {}",
                         segment.ops.size(), Module::kMaxOps);
    }
  }
  return {};
}

PlannerEntry decompose() {
  return PlannerEntry{.name = "decompose",
                      .summary = "exact modules between cut nodes, joined by a shortest path",
                      .objectives = {Objective::latency},
                      .strength = Strength::exact,
                      .effort = Effort::anytime,
                      .share = 20,
                      .knows = kCommonAndSharing,
                      .uses_threads = true,
                      .refuses = refuses,
                      .plan = plan};
}

}  // namespace placewright
