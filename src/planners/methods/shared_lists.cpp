#include "planners/methods/shared_lists.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bounds/pools.h"
#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/methods/quick_plans.h"

namespace placewright {
namespace {

constexpr double kShareOfTime = 0.5;
constexpr double kWeights[] = {0, 0.5, 1, 2, 4, 8};
constexpr double kRounding = 1e-9;

// What ops take of the pools, in time of a whole pool.
class Energies {
 public:
  explicit Energies(const Problem& problem)
      : problem_(problem),
        pools_(problem, Capacity::resources),
        representative_(problem.kind_count()),
        least_(problem.op_count(), kInfinity) {
    for (const DeviceId device : problem.devices()) {
      representative_[problem.kind_of(device)] = device;
    }
    for (const OpId op : problem.ops()) {
      for (const KindId kind : representative_.keys()) {
        least_[op] = std::min(least_[op], energy(op, kind));
      }
    }
  }

  // Infinite where the kind cannot run it.
  [[nodiscard]] double energy(OpId op, KindId kind) const {
    const DeviceId device = representative_[kind];
    if (!device.valid() || problem_.time(op, device) == kUnsupported) return kInfinity;
    const double whole = pools_.capacity[pools_.of_kind[kind]];
    return problem_.time(op, device) * problem_.share(op, device) * pools_.amount[kind] / whole;
  }
  [[nodiscard]] double least(OpId op) const { return least_[op]; }
  // The part of what is shared that a device of the kind takes; 0 where it shares nothing.
  [[nodiscard]] double part(KindId kind) const {
    const DeviceId device = representative_[kind];
    if (!device.valid() || problem_.uses(device).empty()) return 0;
    return pools_.amount[kind] / pools_.capacity[pools_.of_kind[kind]];
  }

 private:
  const Problem& problem_;
  Pools pools_;
  Table<KindId, DeviceId> representative_;
  Table<OpId, double> least_;
};

// How much of the pools each of the ready ops of a model may take.
class Shares final : public StartRule {
 public:
  Shares(const Problem& problem, const Energies& energies)
      : problem_(problem),
        energies_(energies),
        missing_(problem.op_count()),
        ready_(problem.model_count(), 0) {
    for (const OpId op : problem.ops()) {
      missing_[op] = problem.predecessors(op).size();
      if (missing_[op] == 0) ready_[problem.op(op).model] += energies.least(op);
    }
  }

  // The part that its work is of all that is ready, and in any case the least part that runs it.
  [[nodiscard]] double share(OpId op) const {
    double least = kInfinity;
    for (const KindId kind : ids<KindId>(problem_.kind_count())) {
      if (energies_.energy(op, kind) < kInfinity) least = std::min(least, energies_.part(kind));
    }
    const double ready = ready_[problem_.op(op).model];
    const double fair = ready > 0 ? energies_.least(op) / ready : 1;
    return std::max(least, fair) * (1 + kRounding);
  }

  [[nodiscard]] double allowed_start(OpId op, DeviceId device, double start) const override {
    return energies_.part(problem_.kind_of(device)) <= share(op) ? start : kInfinity;
  }

  void placed(OpId op, DeviceId, double) override { placed(op); }
  void placed(OpId op) {
    ready_[problem_.op(op).model] -= energies_.least(op);
    for (const OpId next : problem_.successors(op)) {
      if (--missing_[next] == 0) ready_[problem_.op(next).model] += energies_.least(next);
    }
  }

 private:
  const Problem& problem_;
  const Energies& energies_;
  Table<OpId, std::size_t> missing_;
  Table<ModelId, double> ready_;  // the work of ops that are ready and not placed
};

// The best of the lists so far.
class Best {
 public:
  Best(const Problem& problem, Control& control) : problem_(problem), control_(control) {}

  // On all devices or some of them. The first list is made in any case, if need be around a
  // packing.
  void try_list(const Construction& list, std::optional<std::vector<DeviceId>> devices = {}) {
    if (!answer_) {
      answer_ = construct(problem_, control_, list);
      return;
    }
    if (!goes_on()) return;
    DeviceChoice choice = devices ? DeviceChoice::within_memory(problem_, *std::move(devices))
                                  : DeviceChoice::within_memory(problem_);
    take(list(choice));
  }

  // The whole on a single device is the last of them.
  [[nodiscard]] Answer finish() {
    if (goes_on()) {
      Control part = control_.part("single", control_.remaining());
      take(best_single_device(problem_, part).plan);
    }
    return std::move(*answer_);
  }

 private:
  // Whether there is something to improve, and time for it.
  [[nodiscard]] bool goes_on() {
    return answer_->plan && !control_.should_stop(1) &&
           control_.elapsed() < kShareOfTime * control_.budget().seconds;
  }

  void take(std::optional<Plan> plan) {
    if (!plan || plan->value >= answer_->value()) return;
    answer_->plan = std::move(plan);
    control_.report(*answer_->plan, 0);
  }

  const Problem& problem_;
  Control& control_;
  std::optional<Answer> answer_;
};

// Upward ranks, and of several models the same with one model after the other: those first that are
// soonest done for their weight.
std::vector<Table<OpId, double>> priorities(const Problem& problem, const Energies& energies) {
  std::vector<Table<OpId, double>> made = {upward_ranks(problem)};
  const bool several = problem.model_count() > 1 && problem.op_count() > 0;
  if (!several || problem.objective() != Objective::total_completion) return made;
  Table<ModelId, double> work(problem.model_count(), 0);
  for (const OpId op : problem.ops()) work[problem.op(op).model] += energies.least(op);
  std::vector<ModelId> models(problem.models().begin(), problem.models().end());
  std::ranges::stable_sort(models, std::greater{}, [&](ModelId model) {
    const double weight = problem.model(model).weight;
    return weight > 0 ? problem.model(model).arrival + work[model] / weight : kInfinity;
  });
  Table<ModelId, double> turn(problem.model_count());
  for (std::size_t i = 0; i < models.size(); ++i) turn[models[i]] = static_cast<double>(i);
  Table<OpId, double> by_model = made.front();
  const double highest = *std::ranges::max_element(by_model);
  for (const OpId op : problem.ops()) by_model[op] += turn[problem.op(op).model] * highest;
  made.push_back(std::move(by_model));
  return made;
}

// Sets of devices that take no more than some part of the pools, each kind's in turn, but not all.
std::vector<std::vector<DeviceId>> narrow_devices(const Problem& problem,
                                                  const Energies& energies) {
  std::vector<double> parts;
  for (const DeviceId device : problem.devices()) {
    parts.push_back(energies.part(problem.kind_of(device)));
  }
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  parts.pop_back();
  std::vector<std::vector<DeviceId>> sets;
  for (const double part : parts) {
    std::vector<DeviceId>& narrow = sets.emplace_back();
    for (const DeviceId device : problem.devices()) {
      if (energies.part(problem.kind_of(device)) <= part) narrow.push_back(device);
    }
  }
  return sets;
}

// What is behind an op on each kind of device: its energy, weighed; infinite beyond its share.
class EnergyBehind {
 public:
  EnergyBehind(const Energies& energies, std::size_t kinds) : energies_(energies), behind_(kinds) {}

  [[nodiscard]] std::span<const double> of(OpId op, double weight, double share = kInfinity) {
    for (const KindId kind : behind_.keys()) {
      const double energy = energies_.energy(op, kind);
      const bool offered = energy < kInfinity && energies_.part(kind) <= share;
      behind_[kind] = offered ? weight * energy : kInfinity;
    }
    return behind_;
  }

 private:
  const Energies& energies_;
  Table<KindId, double> behind_;
};

}  // namespace

Answer earliest_end_lists(const Problem& problem, Control& control) {
  const Energies energies(problem);
  EnergyBehind behind(energies, problem.kind_count());
  Best best(problem, control);
  for (const Table<OpId, double>& priority : priorities(problem, energies)) {
    const std::vector<OpId> order = list_order(problem, priority);
    for (const double weight : kWeights) {
      best.try_list([&](DeviceChoice& choice) {
        return earliest_end_plan(problem, order, choice, control,
                                 [&](OpId op) { return behind.of(op, weight); });
      });
    }
    best.try_list([&](DeviceChoice& choice) {
      Shares shares(problem, energies);
      return earliest_end_plan(problem, order, choice, control, [&](OpId op) {
        const double share = shares.share(op);
        shares.placed(op);
        return behind.of(op, 0, share);
      });
    });
  }
  return best.finish();
}

Answer earliest_start_lists(const Problem& problem, Control& control) {
  const Energies energies(problem);
  Best best(problem, control);
  for (const Table<OpId, double>& priority : priorities(problem, energies)) {
    const auto list = [&](DeviceChoice& choice) {
      return earliest_start_plan(problem, priority, choice, control);
    };
    best.try_list(list);
    for (std::vector<DeviceId>& narrow : narrow_devices(problem, energies)) {
      best.try_list(list, std::move(narrow));
    }
    best.try_list([&](DeviceChoice& choice) {
      Shares shares(problem, energies);
      return earliest_start_plan(problem, priority, choice, shares, control);
    });
  }
  return best.finish();
}

}  // namespace placewright
