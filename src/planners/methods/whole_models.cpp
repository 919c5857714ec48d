#include "planners/methods/whole_models.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "evaluate/partial_schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/speed_up.h"

namespace placewright {
namespace {

class WholeModels {
 public:
  WholeModels(const Problem& problem, const SpeedUps& speed_ups, DeviceChoice& choice)
      : problem_(problem),
        speed_ups_(speed_ups),
        choice_(choice),
        schedule_(problem, Gaps::append),
        taken_(problem.device_count(), 0) {
    std::vector<std::pair<ModelId, OpId>> pairs;
    for (const OpId op : problem.topological_order()) pairs.emplace_back(problem.op(op).model, op);
    ops_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), pairs);
  }

  std::optional<Plan> run(Control& control) {
    for (const ModelId model : models_in_order()) {
      const DeviceId device = device_of(model);
      if (device.valid()) taken_[device] = 1;
      for (const OpId op : ops_[model]) {
        if (control.should_stop() || !place(op, device)) return std::nullopt;
      }
    }
    return schedule_.finish();
  }

 private:
  [[nodiscard]] std::vector<ModelId> models_in_order() const {
    std::vector<ModelId> order;
    Table<ModelId, double> best(problem_.model_count(), 0);
    for (const ModelId model : problem_.models()) {
      order.push_back(model);
      for (const DeviceId device : problem_.devices()) {
        best[model] = std::max(best[model], speed_ups_.mean(model, device));
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](ModelId a, ModelId b) {
      const double first = problem_.model(a).arrival;
      const double second = problem_.model(b).arrival;
      return first != second ? first < second : best[a] > best[b];
    });
    return order;
  }

  // Not valid where no device can run the whole model.
  [[nodiscard]] DeviceId device_of(ModelId model) const {
    DeviceId best;
    double best_mean = 0;
    for (const DeviceId device : problem_.devices()) {
      const double mean = speed_ups_.mean(model, device);
      if (taken_[device] || mean <= best_mean) continue;
      best = device;
      best_mean = mean;
    }
    if (best.valid()) return best;
    double free = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      if (speed_ups_.mean(model, device) == 0 || schedule_.device_free(device) >= free) continue;
      best = device;
      free = schedule_.device_free(device);
    }
    return best;
  }

  bool place(OpId op, DeviceId wish) {
    DeviceId best;
    double best_speed_up = -1;
    for (const DeviceId device : choice_.candidates(op)) {
      const double speed_up = device == wish ? kInfinity : speed_ups_.of(op, device);
      if (speed_up <= best_speed_up || schedule_.start_bound(op, device) == kInfinity) continue;
      best = device;
      best_speed_up = speed_up;
    }
    if (!best.valid()) return false;
    choice_.take(op, best);
    schedule_.place(op, best);
    return true;
  }

  const Problem& problem_;
  const SpeedUps& speed_ups_;
  DeviceChoice& choice_;
  PartialSchedule schedule_;
  Table<DeviceId, char> taken_;
  Rows<ModelId, OpId> ops_;
};

}  // namespace

Answer models_on_their_best_devices(const Problem& problem, Control& control) {
  const SpeedUps speed_ups(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    return WholeModels(problem, speed_ups, choice).run(control);
  });
}

}  // namespace placewright
