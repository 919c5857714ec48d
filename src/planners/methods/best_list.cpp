// Many list schedules, and the best of them (`latency`, `total-completion`).
//
// HEFT gives each op to the device where it ends first. Two things it does not see, and each has a
// row of variants here:
//
//   prices    What the time of a kind of device is worth to all other ops. With the prices y of the
//             work bound (bounds/work.h), scaled to 1 in the mean, an op goes to the device with the
//             least
//                 end + w (y(k) time(op, k) - min over kinds j of y(j) time(op, j)),
//             so that scarce kinds are left to the ops that need them most. Weights w = 1, 4, 16:
//             where the devices are full all the time this decides, else w = 0 does.
//   devices   Of many devices a narrow graph needs few, and each change of devices costs a transfer.
//             Each list is made with two thirds of the devices of the last, those that had most to
//             do in it.
//
// Where devices share resources the lists of `heft` and `etf` for these (shared_lists.h) take the
// place of the first list and of the prices.
//
// Both rows end with the first list that is clearly worse than the best. As many passes of HEFT:
// O(ops x devices) slot searches each. It takes at most half of the time given, so that those who
// improve plans have the rest. Nothing is proved.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "bounds/work.h"
#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/methods/quick_plans.h"
#include "planners/methods/shared_lists.h"

namespace placewright {
namespace {

constexpr double kShareOfTime = 0.5;
constexpr double kClearlyWorse = 1.03;
constexpr double kWeights[] = {1, 4, 16};

// What an op costs beyond its best kind, by kind, at the prices of the work bound.
class ExtraCosts {
 public:
  explicit ExtraCosts(const Problem& problem)
      : problem_(problem),
        prices_(work_prices(problem)),
        representative_(problem.kind_count()),
        extra_(problem.kind_count()) {
    for (const DeviceId device : problem.devices()) {
      representative_[problem.kind_of(device)] = device;
    }
  }

  [[nodiscard]] std::span<const double> of(OpId op, double weight) {
    const double scale = weight * static_cast<double>(problem_.device_count());
    double least = kInfinity;
    for (const KindId kind : prices_.keys()) {
      const DeviceId device = representative_[kind];
      const bool runs = device.valid() && problem_.time(op, device) < kUnsupported;
      extra_[kind.index()] = runs ? scale * prices_[kind] * problem_.time(op, device) : kInfinity;
      least = std::min(least, extra_[kind.index()]);
    }
    for (double& extra : extra_) extra -= least;
    return extra_;
  }

 private:
  const Problem& problem_;
  Table<KindId, double> prices_;
  Table<KindId, DeviceId> representative_;
  std::vector<double> extra_;
};

class Lists {
 public:
  Lists(const Problem& problem, Control& control)
      : problem_(problem),
        control_(control),
        shared_(problem.resource_count() > 0),
        order_(list_order(problem, upward_ranks(problem))) {}

  Answer run() {
    Answer answer = first();
    if (!answer.plan) return answer;
    best_ = std::move(answer.plan);
    // Prices are of devices: of what these share, the first lists have weighed the energy.
    if (!shared_) try_prices();
    try_fewer_devices();
    answer.plan = std::move(best_);
    return answer;
  }

 private:
  [[nodiscard]] Answer first() {
    if (!shared_) {
      return construct(problem_, control_, [&](DeviceChoice& choice) {
        return earliest_end_plan(problem_, order_, choice, control_);
      });
    }
    Answer answer = earliest_end_lists(problem_, control_);
    if (!answer.plan || !goes_on()) return answer;
    Answer other = earliest_start_lists(problem_, control_);
    return other.value() < answer.value() ? other : answer;
  }

  // Whether there is time for another list.
  bool goes_on() {
    return !control_.should_stop(1) &&
           control_.elapsed() < kShareOfTime * control_.budget().seconds;
  }

  // Whether the row goes on.
  bool take(Plan plan) {
    const bool near = plan.value < kClearlyWorse * best_->value;
    if (plan.value < best_->value) {
      best_ = std::move(plan);
      control_.report(*best_, 0);
    }
    return near;
  }

  void try_prices() {
    ExtraCosts costs(problem_);
    for (const double weight : kWeights) {
      if (!goes_on()) return;
      DeviceChoice choice = DeviceChoice::within_memory(problem_);
      std::optional<Plan> plan = earliest_end_plan(problem_, order_, choice, control_,
                                                   [&](OpId op) { return costs.of(op, weight); });
      if (!plan || !take(std::move(*plan))) return;
    }
  }

  void try_fewer_devices() {
    Placement last = best_->placement;
    for (std::size_t count = 2 * problem_.device_count() / 3; count > 1; count = 2 * count / 3) {
      if (!goes_on()) return;
      DeviceChoice choice =
          DeviceChoice::within_memory(problem_, busiest_devices(problem_, last, count));
      std::optional<Plan> plan = earliest_end_plan(problem_, order_, choice, control_);
      if (!plan) return;
      last = plan->placement;
      if (!take(std::move(*plan))) return;
    }
  }

  const Problem& problem_;
  Control& control_;
  bool shared_;  // devices share resources
  std::vector<OpId> order_;
  std::optional<Plan> best_;
};

}  // namespace

Answer best_list(const Problem& problem, Control& control) {
  return Lists(problem, control).run();
}

}  // namespace placewright
