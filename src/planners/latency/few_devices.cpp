// few-devices: of many devices a long graph needs few, and on few `decompose` goes far (`latency`).
//
// Each change of devices costs a transfer, so a graph of narrow modules one behind the other
// (transformers, CNNs) runs mostly on a handful of devices that suit its ops and reach each other
// fast. `decompose` takes O(devices^3) for a module: of 16 devices it looks at 20,000 ops for
// minutes, of three it proves its plan in seconds.
//
//   choose   one device after the other. Of each kind, those that exchange tensors fastest with the
//            chosen ones are tried on a stretch of the graph, by HEFT, the best by a short search, and
//            by the bound between cut nodes; the first two are tried as pairs. Where the devices that
//            a plan by `search` uses most promise more, these.
//   plan     by `decompose` on as many of the chosen as it can look at in the time, then on some more
//            where there is time for them too, from the plan before. Where devices share and it
//            refuses the chosen ones (several memory spaces, no cut node), by `search`.
//
// Where there is too little time to choose devices, the answer is the plan that it began with.
//
// The plan is one for all devices; what `decompose` proves of a few of them is not, so there is no
// bound. O(devices^2 x tensors of the sample) and some dozen lists of a stretch, beside
// `decompose`. Not where ops are pinned.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bounds/segments.h"
#include "coarsen/cut_nodes.h"
#include "planners/latency/latency.h"
#include "planners/latency/module.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/quick_plans.h"
#include "planners/methods/sequence_search.h"
#include "problem/move_time.h"
#include "problem/part.h"

namespace placewright {
namespace {

constexpr auto kCounts = std::to_array<std::size_t>({3, 4, 6, 8});
constexpr double kSecondsPerOp = 3e-6;  // and device^3: in that time `decompose` has a good plan
constexpr double kFirstShare = 0.6;     // of the time that is left, where more devices are next
constexpr std::size_t kTriedOfKind = 3;
constexpr std::size_t kStretchOps = 600;
constexpr std::size_t kShortList = 3;
constexpr double kSecondsToChoose = 0.6;
constexpr double kSearchShare = 0.3;  // of the time
constexpr std::uint64_t kMoves = 50;  // of a short search, for each op
constexpr std::size_t kSampledTensors = 16;

// The first ops of the graph, up to a cut node, so many at least.
std::vector<OpId> first_stretch(const Problem& problem) {
  std::vector<OpId> stretch;
  for (const CutSegment& segment : cut_segments(problem)) {
    stretch.insert(stretch.end(), segment.ops.begin(), segment.ops.end());
    if (stretch.size() >= kStretchOps) break;
  }
  return stretch;
}

using DeviceList = std::vector<DeviceId>;

class DevicesThatSuit {
 public:
  DevicesThatSuit(const Problem& problem, const Placement& start, Control& control)
      : problem_(problem), start_(start), control_(control), stretch_(first_stretch(problem)) {
    measure_moves();
  }

  // In the order in which they were chosen, those of before first; fewer than `count` when asked to
  // stop.
  std::span<const DeviceId> choose(std::size_t count) {
    const bool first = chosen_.empty();
    while (chosen_.size() < count && !control_.should_stop(1)) {
      DeviceList more = best_of(chosen_.empty() ? pairs() : with_one_more());
      if (more.empty()) break;
      chosen_ = std::move(more);
    }
    if (first && !chosen_.empty()) {
      chosen_ = best_of({chosen_, busiest_devices(problem_, start_, count)});
    }
    return chosen_;
  }

 private:
  // Between two devices, there and back, for a sample of tensors.
  void measure_moves() {
    const std::size_t devices = problem_.device_count();
    const std::size_t step = std::max<std::size_t>(1, problem_.tensor_count() / kSampledTensors);
    moves_.assign(devices * devices, 0);
    for (const DeviceId a : problem_.devices()) {
      for (const DeviceId b : problem_.devices()) {
        double& time = moves_[a.index() * devices + b.index()];
        for (std::size_t tensor = 0; tensor < problem_.tensor_count(); tensor += step) {
          time += move_time(problem_, TensorId{tensor}, a, b);
          time += move_time(problem_, TensorId{tensor}, b, a);
        }
      }
    }
  }
  [[nodiscard]] double move(DeviceId a, DeviceId b) const {
    return moves_[a.index() * problem_.device_count() + b.index()];
  }
  [[nodiscard]] double moves_to_chosen(DeviceId device) const {
    double time = 0;
    for (const DeviceId other : chosen_) time += move(other, device);
    return time;
  }

  // The lists of least cost, some for each pair of kinds of their last two devices.
  template <class Cost>
  [[nodiscard]] std::vector<DeviceList> few_of_each(std::vector<DeviceList> lists,
                                                    const Cost& cost) const {
    std::ranges::stable_sort(lists, {}, cost);
    std::vector<std::size_t> taken(problem_.kind_count() * problem_.kind_count(), 0);
    std::erase_if(lists, [&](const DeviceList& list) {
      const KindId one = problem_.kind_of(list.back());
      const KindId other = problem_.kind_of(list.end()[-2]);
      const auto [low, high] = std::minmax({one.index(), other.index()});
      return ++taken[low * problem_.kind_count() + high] > kTriedOfKind;
    });
    return lists;
  }

  [[nodiscard]] std::vector<DeviceList> pairs() const {
    std::vector<DeviceList> all;
    for (const DeviceId a : problem_.devices()) {
      for (const DeviceId b : problem_.devices()) {
        if (a < b) all.push_back({a, b});
      }
    }
    return few_of_each(std::move(all),
                       [&](const DeviceList& pair) { return move(pair.front(), pair.back()); });
  }

  [[nodiscard]] std::vector<DeviceList> with_one_more() const {
    std::vector<DeviceList> all;
    for (const DeviceId device : problem_.devices()) {
      if (std::ranges::find(chosen_, device) != chosen_.end()) continue;
      all.push_back(chosen_);
      all.back().push_back(device);
    }
    return few_of_each(std::move(all),
                       [&](const DeviceList& list) { return moves_to_chosen(list.back()); });
  }

  // By lists of the stretch, and the most promising of these by a short search; empty where the
  // stretch has a plan on none of them.
  [[nodiscard]] DeviceList best_of(const std::vector<DeviceList>& lists) {
    std::vector<std::pair<double, const DeviceList*>> ranking;
    for (const DeviceList& list : lists)
      ranking.emplace_back(promise(list, earliest_end_list), &list);
    std::ranges::sort(ranking);
    if (ranking.size() > kShortList) ranking.resize(kShortList);
    for (auto& [value, list] : ranking)
      value = promise(
          *list, [](const Problem& few, Control& part) { return search_sequences(few, part); });
    if (ranking.empty()) return {};
    const auto& [value, best] = *std::ranges::min_element(ranking);
    return value < kInfinity ? *best : DeviceList{};
  }

  // Ops of the whole graph, not of the stretch alone.
  [[nodiscard]] bool can_run_all(const DeviceList& devices) const {
    return std::ranges::all_of(problem_.groups(), [&](GroupId group) {
      return std::ranges::any_of(
          devices, [&](DeviceId device) { return problem_.group_allowed(group, device); });
    });
  }

  // What is easily had on these devices, and the bound, which says what may be had.
  [[nodiscard]] double promise(const DeviceList& devices, QuickPlan* planner) {
    if (control_.should_stop(1) || !can_run_all(devices)) return kInfinity;
    ProblemDraft draft = part_of(problem_, stretch_);
    keep_devices(draft, devices);
    const Problem few(std::move(draft));
    Budget budget = control_.budget();
    budget.seconds = std::max(0.0, control_.remaining());
    budget.steps = std::min<std::uint64_t>(budget.steps, kMoves * stretch_.size());
    Control apart("few-devices", budget, control_.interruption());
    return planner(few, apart).value() + segment_bound(few);
  }

  const Problem& problem_;
  const Placement& start_;
  Control& control_;
  std::vector<OpId> stretch_;
  std::vector<double> moves_;  // device x device
  DeviceList chosen_;
};

// A plan on a few devices, as one on all.
Plan on_all(Plan plan, std::span<const DeviceId> devices) {
  const auto renumber = [&](DeviceId& device) {
    if (device.valid()) device = devices[device.index()];
  };
  for (DeviceId& device : plan.placement) renumber(device);
  for (Transfer& transfer : plan.schedule->transfers) {
    renumber(transfer.from);
    renumber(transfer.to);
  }
  return plan;
}

class FewDevices {
 public:
  FewDevices(const Problem& problem, Control& control) : problem_(problem), control_(control) {}

  Answer run() {
    Answer answer = start();
    if (!answer.plan) return answer;
    best_ = std::move(answer.plan);
    if (control_.cannot_afford(kSecondsToChoose + 2 * seconds_on(kCounts.front()), 0).empty()) {
      search_on_all();
      plan_on_few();
    }
    answer.plan = std::move(best_);
    return answer;
  }

 private:
  Answer start() {
    if (control_.start != nullptr) return Answer{.plan = *control_.start};
    Control part = control_.part("lists", control_.remaining());
    return best_list(problem_, part);
  }

  // A plan that uses most what suits best.
  void search_on_all() {
    const PlannerEntry planner = search();
    Control part = control_.part(planner.name, kSearchShare * control_.remaining());
    part.start = &*best_;
    Answer found = planner.plan(problem_, Settings{planner.options}, part);
    if (found.value() < best_->value) best_ = std::move(found.plan);
  }

  void plan_on_few() {
    const Placement given = best_->placement;
    DevicesThatSuit suit(problem_, given, control_);
    for (std::size_t i = 0; i < kCounts.size() && !control_.should_stop(1); ++i) {
      if (kCounts[i] >= problem_.device_count()) break;
      const double next = i + 1 < kCounts.size() ? seconds_on(kCounts[i + 1]) : kInfinity;
      if (!on_few_ && control_.cannot_afford(next / kFirstShare, 0).empty()) continue;
      const std::span<const DeviceId> chosen = suit.choose(kCounts[i]);
      const bool more_follow = control_.cannot_afford(next / (2 * (1 - kFirstShare)), 0).empty();
      if (chosen.empty() || !plan_on(chosen, more_follow ? kFirstShare : 1)) break;
    }
  }

  // Infinite where these are all devices.
  [[nodiscard]] double seconds_on(std::size_t devices) const {
    if (devices >= problem_.device_count()) return kInfinity;
    return kSecondsPerOp * static_cast<double>(problem_.op_count() * devices * devices * devices);
  }

  // False where there is no plan on these devices.
  bool plan_on(std::span<const DeviceId> devices, double share) {
    ProblemDraft draft = problem_.draft();
    keep_devices(draft, devices);
    const Problem few(std::move(draft));
    const PlannerEntry planner = decompose().refusal(few).empty() ? decompose() : search();
    Control apart = control_.apart(planner.name, share * control_.remaining());
    if (on_few_) apart.start = &*on_few_;
    Answer found = planner.plan(few, Settings{planner.options}, apart);
    if (!found.plan) return false;
    on_few_ = std::move(found.plan);
    if (on_few_->value < best_->value) {
      best_ = on_all(*on_few_, devices);
      control_.report(*best_, 0);
    }
    return true;
  }

  const Problem& problem_;
  Control& control_;
  std::optional<Plan> best_;
  std::optional<Plan> on_few_;  // the last; the next devices begin with the same
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return FewDevices(problem, control).run();
}

std::string refuses(const Problem& problem) {
  if (problem.device_count() <= kCounts.front()) return "there are few devices";
  return too_wide_for_decompose(problem);
}

// Of so few that share, `decompose` looks at all.
bool worth_its_time(const Problem& problem) {
  return !problem.has_sharing() || problem.device_count() > Module::kMaxDevices;
}

}  // namespace

PlannerEntry few_devices() {
  return PlannerEntry{.name = "few-devices",
                      .summary = "the few devices that suit a long graph, planned by decompose",
                      .objectives = {Objective::latency},
                      .effort = Effort::anytime,
                      .share = 12,
                      .worth_its_time = worth_its_time,
                      .knows = kCommonAndSharing - Features{Feature::pins},
                      .refuses = refuses,
                      .plan = plan};
}

}  // namespace placewright
