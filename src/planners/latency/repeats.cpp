// repeats, for schedules: layers that are there again and again are planned once, then joined.
//
// coarsen/repetition.h finds the layers by structure. A stretch of some layers, each op with its
// mean times over all of them, is planned by `decompose` where it serves, else by `search`; with
// more devices than `decompose` takes, on those that the start plan uses most. Each layer inside
// the stretch is then tried as the pattern of all: same devices, same order, each layer as much
// later than the one before as in the stretch. Other ops stay where the start plan has them. A good
// start for `search`.
//
// `decompose` alone looks at modules between cut nodes that are equal in everything once, and
// proves its plan. This is for what it leaves: layers whose times differ a little, that share a
// mask, or run on dozens of devices. Where nothing repeats, the answer is the start plan. O(ops
// log) beside the planners that it asks. No bound of its own. What it refuses: methods/layers.h.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coarsen/repetition.h"
#include "evaluate/memory.h"
#include "evaluate/schedule.h"
#include "planners/latency/latency.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/fill_rules.h"
#include "planners/methods/layers.h"
#include "planners/methods/quick_plans.h"
#include "problem/part.h"

namespace placewright {
namespace {

constexpr std::size_t kStretchOps = 120;  // or four layers
constexpr std::size_t kLeastLayers = 4;
constexpr std::size_t kMostDevices = 16;
constexpr double kStretchShare = 0.4;  // of the time

class Repeats {
 public:
  Repeats(const Problem& problem, Control& control)
      : problem_(problem),
        control_(control),
        layers_(longest_repetition(problem).value_or(Repetition{})) {}

  Answer run() {
    Answer answer = start();
    if (!answer.plan || layers_.count == 0) return answer;
    best_ = std::move(answer.plan);
    plan_stretch();
    answer.plan = std::move(best_);
    return answer;
  }

 private:
  Answer start() {
    if (control_.start != nullptr) return Answer{.plan = *control_.start};
    Control filling = control_.part("repeats", control_.remaining());
    Answer answer = fill_evenly(problem_, filling);
    Control listing = control_.part("repeats", control_.remaining());
    Answer better = best_list(problem_, listing);
    return better.value() < answer.value() ? better : answer;
  }

  void offer(Plan plan) {
    if (plan.value >= best_->value || !memory_fits(problem_, plan.placement)) return;
    best_ = std::move(plan);
    control_.report(*best_, 0);
  }

  [[nodiscard]] std::size_t layers_of_stretch() const {
    return std::min(layers_.count, std::max(kLeastLayers, kStretchOps / layers_.period));
  }
  [[nodiscard]] OpId op_at(std::size_t layer, std::size_t role) const {
    return problem_.topological_order()[layers_.begin + layer * layers_.period + role];
  }

  void plan_stretch() {
    const std::vector<DeviceId> devices = devices_of_stretch();
    const Problem stretch(stretch_draft(devices));
    const PlannerEntry planner = decompose().refusal(stretch).empty() ? decompose() : search();
    Control apart = control_.apart(planner.name, kStretchShare * control_.remaining());
    const Answer found = planner.plan(stretch, Settings{planner.options}, apart);
    if (!found.plan) return;
    for (std::size_t layer = 1; layer + 2 < layers_of_stretch() && !control_.should_stop(1);
         ++layer) {
      offer(repeated(*found.plan, layer, devices));
    }
  }

  // The busiest of the start plan, in their order; all where they would not do.
  [[nodiscard]] std::vector<DeviceId> devices_of_stretch() const {
    std::vector<DeviceId> devices = busiest_devices(problem_, best_->placement, kMostDevices);
    for (std::size_t role = 0; role < layers_.period; ++role) {
      const OpId op = op_at(0, role);
      const auto runs = [&](DeviceId device) { return problem_.allowed(op, device); };
      if (std::ranges::none_of(devices, runs)) {
        return {problem_.devices().begin(), problem_.devices().end()};
      }
    }
    return devices;
  }

  [[nodiscard]] ProblemDraft stretch_draft(const std::vector<DeviceId>& devices) const {
    std::vector<OpId> ops;
    for (std::size_t layer = 0; layer < layers_of_stretch(); ++layer) {
      for (std::size_t role = 0; role < layers_.period; ++role) ops.push_back(op_at(layer, role));
    }
    ProblemDraft draft = part_of(problem_, ops);
    keep_devices(draft, devices);
    for (std::size_t role = 0; role < layers_.period; ++role) {
      const std::vector<double> mean = mean_times(role);
      for (std::size_t i = role; i < draft.ops.size(); i += layers_.period)
        draft.ops[i].time = mean;
    }
    return draft;
  }

  // By kind. What a layer cannot run somewhere, none can: labels say so.
  [[nodiscard]] std::vector<double> mean_times(std::size_t role) const {
    std::vector<double> mean(problem_.kind_count(), 0);
    for (std::size_t layer = 0; layer < layers_.count; ++layer) {
      const std::vector<double>& times = problem_.op(op_at(layer, role)).time;
      for (std::size_t kind = 0; kind < mean.size(); ++kind) {
        mean[kind] += times[kind] / static_cast<double>(layers_.count);
      }
    }
    return mean;
  }

  // A layer of the stretch in place of every layer. The order of the ops is that of the stretch, as
  // far as the graph permits.
  [[nodiscard]] Plan repeated(const Plan& plan, std::size_t layer,
                              const std::vector<DeviceId>& devices) const {
    const auto number = [&](std::size_t of_layer, std::size_t role) {
      return OpId{of_layer * layers_.period + role};
    };
    double later = 0;  // one layer than the one before
    for (std::size_t role = 0; role < layers_.period; ++role) {
      later += (plan.schedule->start[number(layer + 1, role)] -
                plan.schedule->start[number(layer, role)]) /
               static_cast<double>(layers_.period);
    }
    Placement placement = best_->placement;
    Table<OpId, double> urgency(problem_.op_count(), 0);
    const double whole = later * static_cast<double>(layers_.count) + plan.value;
    for (const OpId op : problem_.ops()) {
      if (problem_.topological_rank(op) >= layers_.end()) urgency[op] = -2 * whole;
    }
    for (std::size_t of_layer = 0; of_layer < layers_.count; ++of_layer) {
      for (std::size_t role = 0; role < layers_.period; ++role) {
        const OpId model = number(layer, role);
        const OpId op = op_at(of_layer, role);
        placement[op] = devices[plan.placement[model].index()];
        urgency[op] = -(plan.schedule->start[model] + static_cast<double>(of_layer) * later);
      }
    }
    const std::vector<OpId> order = list_order(problem_, urgency);
    Schedule schedule = ScheduleEvaluator(problem_).schedule(order, placement);
    return schedule_plan(problem_, std::move(placement), std::move(schedule));
  }

  const Problem& problem_;
  Control& control_;
  Repetition layers_;
  std::optional<Plan> best_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return Repeats(problem, control).run();
}

}  // namespace

PlannerEntry repeats_in_schedules() {
  return PlannerEntry{.name = "repeats",
                      .summary = "layers found by structure, planned once, then joined",
                      .objectives = {Objective::latency},
                      .knows = kLayersKnow,
                      .plan = plan};
}

}  // namespace placewright
