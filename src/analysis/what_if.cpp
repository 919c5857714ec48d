#include "analysis/what_if.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "analysis/carried_plan.h"
#include "machine/fan_out.h"
#include "planning/doubtful_gain.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

// Sets of cores may not be there in every number.
ProblemDraft with_this_many(ProblemDraft draft, std::size_t count) {
  ProblemDraft changed = with_device_count(draft, count);
  if (!are_sets_of_resources(draft.cluster)) return changed;
  if (const std::size_t there = countable_devices(changed); there != count) {
    throw std::invalid_argument(
        fmt::format("no sets of {0}s make {1} {0}s: those within {1} have {2}",
                    countable_word(draft.cluster), count, there));
  }
  return changed;
}

ProblemDraft varied(ProblemDraft draft, const WhatIfPoint& point, const BatchGrowth& growth) {
  if (const auto& purchase = point.purchase) {
    if (purchase->copy_of) draft = with_copy_of(std::move(draft), *purchase->copy_of);
    if (purchase->links) {
      draft = with_links(std::move(draft), purchase->links->first, purchase->links->second);
    }
  }
  if (point.set) draft = with_devices(std::move(draft), point.set->devices);
  if (point.devices > 0) draft = with_this_many(std::move(draft), point.devices);
  if (point.memory != 1) draft = with_memory(std::move(draft), point.memory);
  if (point.bandwidth != 1) draft = with_bandwidth(std::move(draft), point.bandwidth);
  if (point.speed != 1) draft = with_speed(std::move(draft), point.speed);
  if (point.batch != 1) draft = with_batch(std::move(draft), point.batch, growth);
  return draft;
}

template <class Value>
std::vector<Value> or_as_it_is(const std::vector<Value>& values, Value as_it_is) {
  return values.empty() ? std::vector<Value>{as_it_is} : values;
}

// The plan with the devices of another problem that have the same names; nullopt if one that it
// uses is not there.
std::optional<Plan> renumbered(Plan plan, const Problem& from, const Problem& to) {
  Table<DeviceId, DeviceId> number(from.device_count());
  for (const DeviceId device : from.devices()) {
    number[device] = to.find_device(from.device(device).name).value_or(DeviceId{});
  }
  bool complete = true;
  const auto renumber = [&](DeviceId& device) {
    if (!device.valid()) return;
    device = number[device];
    complete = complete && device.valid();
  };
  for (DeviceId& device : plan.placement) renumber(device);
  for (Stage& stage : plan.stages) {
    for (DeviceId& device : stage.devices) renumber(device);
  }
  for (Call& call : plan.calls) renumber(call.device);
  if (plan.schedule) {
    for (Transfer& transfer : plan.schedule->transfers) {
      renumber(transfer.from);
      renumber(transfer.to);
    }
  }
  if (!complete) return std::nullopt;
  return plan;
}

class GridRun {
 public:
  GridRun(const ProblemDraft& draft, const WhatIfGrid& grid, const Registry& registry,
          const PlanRequest& request, const std::atomic<bool>* interrupted)
      : draft_(draft),
        growth_(grid.growth),
        registry_(registry),
        request_(request),
        interrupted_(interrupted) {
    for (WhatIfPoint& point : grid.points()) {
      answers_.push_back({.point = std::move(point)});
    }
    problems_.resize(answers_.size());
    request_.budget.threads = 1;
    request_.start = nullptr;
  }

  std::vector<WhatIfAnswer> run(int threads, const WhatIfObserver& observer) {
    std::size_t done = 0;
    const FanOut fan_out{.threads = threads};
    fan_out.run(answers_.size(), [&](std::size_t i) {
      plan(i);
      const std::lock_guard lock(mutex_);
      ++done;
      if (observer) observer(done, answers_.size());
    });
    std::vector<std::optional<Plan>> own;
    for (const WhatIfAnswer& answer : answers_) own.push_back(answer.plan);
    fan_out.run(answers_.size(), [&](std::size_t i) { try_other_plans(i, own); });
    return std::move(answers_);
  }

 private:
  [[nodiscard]] bool interrupted() const {
    return interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed);
  }

  void plan(std::size_t i) {
    WhatIfAnswer& answer = answers_[i];
    answer.outcome.planner = request_.planner;
    answer.devices = answer.point.devices;
    try {
      ProblemDraft changed = varied(draft_, answer.point, growth_);
      // As many as asked for; what is left of the devices may look as if something else were
      // counted.
      if (answer.devices == 0) answer.devices = countable_devices(changed);
      if (interrupted()) {
        answer.outcome.answer.reason = "interrupted";
        return;
      }
      problems_[i].emplace(std::move(changed));
    } catch (const InvalidProblem& error) {
      answer.outcome.answer.proved_infeasible = true;
      answer.outcome.answer.reason = error.what();
      return;
    } catch (const RequestError&) {
      throw;
    } catch (const std::invalid_argument& error) {
      answer.outcome.answer.reason = error.what();
      return;
    }
    answer.price = answer.point.purchase ? answer.point.purchase->price : 0;
    for (const Device& device : problems_[i]->draft().cluster.devices) answer.price += device.price;
    answer.outcome = make_plan(*problems_[i], registry_, request_, interrupted_);
    answer.plan = answer.outcome.answer.plan;
  }

  void try_other_plans(std::size_t i, const std::vector<std::optional<Plan>>& plans) {
    if (!problems_[i]) return;
    WhatIfAnswer& answer = answers_[i];
    for (std::size_t other = 0; other < plans.size(); ++other) {
      if (other == i || !plans[other]) continue;
      const auto shape = renumbered(*plans[other], *problems_[other], *problems_[i]);
      if (!shape) continue;
      auto carried = valid_carried_plan(*problems_[i], shape->placement, *shape);
      if (!carried || carried->value >= answer.value()) continue;
      if (answer.plan && plan_instead_of_doubtful(*problems_[i], *carried)) continue;
      answer.plan = std::move(carried);
      answer.carried = true;
    }
  }

  const ProblemDraft& draft_;
  const BatchGrowth& growth_;
  const Registry& registry_;
  PlanRequest request_;
  const std::atomic<bool>* interrupted_;
  std::vector<WhatIfAnswer> answers_;
  std::vector<std::optional<Problem>> problems_;
  std::mutex mutex_;
};

// Where a point and a grid keep the values of an axis; the devices are counts.
struct Factor {
  Axis axis;
  double WhatIfPoint::*point;
  std::vector<double> WhatIfGrid::*grid;
};
constexpr Factor kFactors[] = {{Axis::memory, &WhatIfPoint::memory, &WhatIfGrid::memory},
                               {Axis::bandwidth, &WhatIfPoint::bandwidth, &WhatIfGrid::bandwidth},
                               {Axis::speed, &WhatIfPoint::speed, &WhatIfGrid::speed},
                               {Axis::batch, &WhatIfPoint::batch, &WhatIfGrid::batch}};

const Factor& factor_of(Axis axis) {
  return *std::ranges::find(kFactors, axis, &Factor::axis);
}

}  // namespace

std::vector<DeviceSet> sets_without(const ProblemDraft& draft,
                                    const std::vector<std::string>& names) {
  const Cluster& cluster = draft.cluster;
  std::vector<DeviceSet> sets = {{"all", {}}};
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) sets[0].devices.push_back(i);
  for (const std::string& name : names) {
    DeviceSet set{fmt::format("without {}", name), {}};
    for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
      const Device& device = cluster.devices[i];
      const bool named = device.name == name || cluster.kinds[device.kind.index()].name == name;
      if (!named) set.devices.push_back(i);
    }
    if (set.devices.size() == cluster.devices.size()) {
      throw std::invalid_argument(fmt::format("no device and no kind is called '{}'", name));
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<Purchase> one_more_of(const ProblemDraft& draft,
                                  const std::vector<std::string>& names) {
  const Cluster& cluster = draft.cluster;
  std::vector<Purchase> purchases;
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(cluster.devices, [&](const Device& device) {
      return device.name == name || cluster.kinds[device.kind.index()].name == name;
    });
    if (found == cluster.devices.end()) {
      throw std::invalid_argument(fmt::format("no device and no kind is called '{}'", name));
    }
    const auto device = static_cast<std::size_t>(found - cluster.devices.begin());
    purchases.push_back({fmt::format("one more {}", name), DeviceId{device}});
  }
  return purchases;
}

std::vector<DeviceSet> all_device_sets(const ProblemDraft& draft, std::size_t most) {
  std::map<KindId, std::vector<std::size_t>> by_kind;
  for (std::size_t i = 0; i < draft.cluster.devices.size(); ++i) {
    by_kind[draft.cluster.devices[i].kind].push_back(i);
  }
  std::vector<DeviceSet> sets = {{"", {}}};
  for (const auto& [kind, devices] : by_kind) {
    const bool stays = draft.cluster.kinds[kind.index()].on_host;
    std::vector<DeviceSet> longer;
    for (const DeviceSet& set : sets) {
      for (std::size_t count = stays ? devices.size() : 0; count <= devices.size(); ++count) {
        longer.push_back(set);
        if (count == 0) continue;
        DeviceSet& last = longer.back();
        last.devices.insert(last.devices.end(), devices.begin(),
                            devices.begin() + static_cast<std::ptrdiff_t>(count));
        last.name += fmt::format("{}{} x {}", last.name.empty() ? "" : ", ", count,
                                 draft.cluster.kinds[kind.index()].name);
      }
      if (longer.size() > most + 1) {
        throw std::invalid_argument(fmt::format("there are more than {} sets of devices", most));
      }
    }
    sets = std::move(longer);
  }
  std::erase_if(sets, [](const DeviceSet& set) { return set.devices.empty(); });
  for (DeviceSet& set : sets) std::ranges::sort(set.devices);
  std::ranges::stable_sort(sets, std::ranges::greater{},
                           [](const DeviceSet& set) { return set.devices.size(); });
  return sets;
}

double WhatIfPoint::at(Axis axis) const {
  return axis == Axis::devices ? static_cast<double>(devices) : this->*factor_of(axis).point;
}

std::vector<double> WhatIfGrid::values(Axis axis) const {
  if (axis == Axis::devices) return {devices.begin(), devices.end()};
  return this->*factor_of(axis).grid;
}

std::vector<WhatIfPoint> WhatIfGrid::points() const {
  std::vector<std::optional<DeviceSet>> chosen(sets.begin(), sets.end());
  if (chosen.empty()) chosen.emplace_back();
  std::vector<std::optional<Purchase>> bought = {std::nullopt};
  bought.insert(bought.end(), purchases.begin(), purchases.end());
  std::vector<WhatIfPoint> points;
  for (const auto& purchase : bought) {
    for (const auto& set : chosen) {
      for (const std::size_t count : or_as_it_is<std::size_t>(devices, 0)) {
        for (const double memory_factor : or_as_it_is(memory, 1.0)) {
          for (const double bandwidth_factor : or_as_it_is(bandwidth, 1.0)) {
            for (const double speed_factor : or_as_it_is(speed, 1.0)) {
              for (const double batch_factor : or_as_it_is(batch, 1.0)) {
                points.push_back({count, memory_factor, bandwidth_factor, speed_factor,
                                  batch_factor, set, purchase});
              }
            }
          }
        }
      }
    }
  }
  return points;
}

double WhatIfAnswer::cost_per_sample(TimeUnit unit) const {
  if (unit == TimeUnit::none) return kInfinity;
  constexpr double kMillisecondsOfAnHour = 3.6e6;
  return price * per_sample() * milliseconds_in(unit) / kMillisecondsOfAnHour;
}

Status WhatIfAnswer::status() const {
  Answer answer = outcome.answer;
  answer.plan = plan;
  return answer.status();
}

std::vector<WhatIfAnswer> what_if(const ProblemDraft& draft, const WhatIfGrid& grid,
                                  const Registry& registry, const PlanRequest& request,
                                  const std::atomic<bool>* interrupted,
                                  const WhatIfObserver& observer) {
  return GridRun(draft, grid, registry, request, interrupted).run(request.budget.threads, observer);
}

}  // namespace placewright
