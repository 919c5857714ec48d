// What if there were more devices, more memory, faster links: the problem planned again over a
// grid.
//
// Every point of the grid is a problem of its own (variation.h), planned by the same planner with
// the same budget; points are shared out over threads, each plan runs on one. Afterwards every
// point also tries the plans of the other points (carried_plan.h), because a plan for two devices
// is a plan for three, and one for a slow link is often good for a fast one. So no point is worse
// than a point with less of everything whose plan it can use. All plans have passed the verifier.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/variation.h"
#include "planning/service.h"
#include "problem/draft.h"
#include "problem/plan.h"
#include "problem/spelling.h"

namespace placewright {

enum class Axis { devices, memory, bandwidth, speed, batch };
template <>
inline constexpr auto kSpellings<Axis> = std::to_array<Spelling<Axis>>({
    {Axis::devices, "devices"},
    {Axis::memory, "memory"},
    {Axis::bandwidth, "bandwidth"},
    {Axis::speed, "speed"},
    {Axis::batch, "batch"},
});

// Some of the problem's devices.
struct DeviceSet {
  std::string name;
  std::vector<std::size_t> devices;
};

// All devices, then all but those of each name, which is a device's or a kind's. Throws
// std::invalid_argument for a name that neither has.
std::vector<DeviceSet> sets_without(const ProblemDraft& draft,
                                    const std::vector<std::string>& names);

// Every set of devices, largest first; of sets that differ only in which devices of one kind they
// have, the first. Host devices are in each. At most `most` sets: throws std::invalid_argument if
// there are more.
std::vector<DeviceSet> all_device_sets(const ProblemDraft& draft, std::size_t most);

// What is bought: one more device like one that is there, or other links.
struct Purchase {
  std::string name;
  std::optional<DeviceId> copy_of = {};
  std::optional<std::pair<double, double>> links = {};  // latency and bandwidth
  double price = 0;                                     // per hour, beside the prices of devices
};

// One more device of each name, which is a device's or a kind's. Throws std::invalid_argument for a
// name that neither has.
std::vector<Purchase> one_more_of(const ProblemDraft& draft, const std::vector<std::string>& names);

// One point. `devices` is a count (0: as they are), `set` names the devices (nullopt: all), the
// others are factors.
struct WhatIfPoint {
  std::size_t devices = 0;
  double memory = 1;
  double bandwidth = 1;
  double speed = 1;
  double batch = 1;
  std::optional<DeviceSet> set = {};
  std::optional<Purchase> purchase = {};

  [[nodiscard]] double at(Axis axis) const;
};

// The values of each axis; an empty axis leaves the problem as it is.
struct WhatIfGrid {
  std::vector<std::size_t> devices = {};
  std::vector<double> memory = {};
  std::vector<double> bandwidth = {};
  std::vector<double> speed = {};
  std::vector<double> batch = {};
  std::vector<DeviceSet> sets = {};
  std::vector<Purchase> purchases = {};  // one at a time, and before them none
  std::string counted = "device";        // what `devices` is a number of, for people
  BatchGrowth growth = {};               // of ops with the batch; empty: in proportion

  [[nodiscard]] std::vector<WhatIfPoint> points() const;
  [[nodiscard]] std::vector<double> values(Axis axis) const;
};

struct WhatIfAnswer {
  WhatIfPoint point;
  std::size_t devices = 0;        // of the point's problem (countable_devices), or as asked for
  double price = 0;               // per hour, of all its devices and of what is bought
  PlanOutcome outcome = {};       // without a plan: the reason says why
  std::optional<Plan> plan = {};  // the best for the point
  bool carried = false;           // it is the plan of another point

  [[nodiscard]] double value() const { return plan ? plan->value : kInfinity; }
  // Time for one sample: the value shared by the samples of the batch.
  [[nodiscard]] double per_sample() const { return value() / point.batch; }
  // Price of the cluster for the time of one sample; infinite without a plan or a unit of time.
  [[nodiscard]] double cost_per_sample(TimeUnit unit) const;
  [[nodiscard]] double lower_bound() const { return outcome.answer.certificate.lower_bound; }
  [[nodiscard]] Status status() const;
};

// Told after each point: how many are done, of how many.
using WhatIfObserver = std::function<void(std::size_t done, std::size_t all)>;

// `request.budget` is for each point; its threads are how many points are planned at once. Points
// after an interruption get no plan. Throws RequestError as make_plan does.
std::vector<WhatIfAnswer> what_if(const ProblemDraft& draft, const WhatIfGrid& grid,
                                  const Registry& registry, const PlanRequest& request,
                                  const std::atomic<bool>* interrupted = nullptr,
                                  const WhatIfObserver& observer = {});

}  // namespace placewright
