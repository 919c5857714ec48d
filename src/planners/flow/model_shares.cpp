#include "planners/flow/model_shares.h"

#include <algorithm>
#include <utility>

#include "problem/exclusion.h"

namespace placewright {

ModelShares::ModelShares(const Problem& problem)
    : problem_(problem),
      time_(problem.model_count() * problem.device_count(), 0),
      excluded_(excluded_devices(problem)),
      of_kind_(problem.kind_count()) {
  for (const DeviceId device : problem.devices()) {
    of_kind_[problem.kind_of(device)].push_back(device);
    for (const OpId op : problem.ops()) {
      const std::size_t model = problem.op(op).model.index();
      time_[model * problem.device_count() + device.index()] +=
          problem.allowed(op, device) ? problem.time(op, device) : kInfinity;
    }
  }
}

DeviceId ModelShares::fastest(ModelId model) const {
  DeviceId best{0};
  for (const DeviceId device : problem_.devices()) {
    if (time(model, device) < time(model, best)) best = device;
  }
  return best;
}

double ModelShares::time_on_kind(ModelId model, KindId kind) const {
  double least = kInfinity;
  for (const DeviceId device : of_kind_[kind]) least = std::min(least, time(model, device));
  return least;
}

class ModelShares::Search {
 public:
  Search(const ModelShares& shares, const std::vector<WaitingModel>& waiting,
         const Table<DeviceId, double>& busy, std::size_t evaluations)
      : shares_(shares), waiting_(waiting), busy_(busy), left_(evaluations) {}

  std::vector<ModelStart> run(double least_gain) {
    Choices simplest = shortest_first();
    offer(simplest);
    const double simple_value = value_;
    for (std::size_t kind = 0; kind < shares_.problem_.kind_count(); ++kind) {
      offer(all_on(KindId{kind}));
    }
    while (left_ > 0 && (change_a_kind() || move_a_model())) {
    }
    return starts_of(value_ > (1 - least_gain) * simple_value ? simplest : best_);
  }

 private:
  // Each model on the kind that is given for it: those of most weight for their time first.
  template <class KindOf>
  [[nodiscard]] Choices ranked(const KindOf& kind_of) const {
    std::vector<std::pair<double, Choice>> ranked;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const ModelId model = waiting_[i].model;
      const KindId kind = kind_of(model);
      const double time = shares_.time_on_kind(model, kind);
      if (time == kInfinity) continue;
      const double weight = shares_.problem_.model(model).weight;
      ranked.push_back({weight > 0 ? time / weight : kInfinity, {i, kind}});
    }
    std::ranges::stable_sort(ranked, {}, &std::pair<double, Choice>::first);
    Choices choices;
    for (const auto& [rank, choice] : ranked) choices.push_back(choice);
    return choices;
  }

  [[nodiscard]] Choices shortest_first() const {
    return ranked([&](ModelId model) { return fastest_kind(model); });
  }

  // If the kind cannot run one of them, that one on the kind that is fastest for it.
  [[nodiscard]] Choices all_on(KindId kind) const {
    return ranked([&](ModelId model) {
      return shares_.time_on_kind(model, kind) < kInfinity ? kind : fastest_kind(model);
    });
  }

  [[nodiscard]] KindId fastest_kind(ModelId model) const {
    KindId fastest{0};
    for (std::size_t kind = 1; kind < shares_.problem_.kind_count(); ++kind) {
      if (shares_.time_on_kind(model, KindId{kind}) < shares_.time_on_kind(model, fastest)) {
        fastest = KindId{kind};
      }
    }
    return fastest;
  }

  [[nodiscard]] std::vector<ModelStart> starts_of(const Choices& choices) const {
    std::vector<ModelStart> starts;
    Table<DeviceId, double> busy = busy_;
    for (const Choice& choice : choices) {
      const WaitingModel& waiting = waiting_[choice.waiting];
      ModelStart earliest{.model = waiting.model, .device = {}, .start = kInfinity, .end = 0};
      for (const DeviceId device : shares_.of_kind_[choice.kind]) {
        if (shares_.time(waiting.model, device) == kInfinity) continue;
        double start = waiting.ready;
        for (const DeviceId other : shares_.excluded_[device]) start = std::max(start, busy[other]);
        if (start >= earliest.start) continue;
        earliest.device = device;
        earliest.start = start;
      }
      earliest.end = earliest.start + shares_.time(waiting.model, earliest.device);
      busy[earliest.device] = earliest.end;
      starts.push_back(earliest);
    }
    return starts;
  }

  bool offer(Choices choices) {
    if (left_ == 0) return false;
    --left_;
    double value = 0;
    for (const ModelStart& start : starts_of(choices)) {
      value += shares_.problem_.model(start.model).weight * start.end;
    }
    constexpr double kLeastGain = 1e-9;
    if (!(value < value_ * (1 - kLeastGain))) return false;
    best_ = std::move(choices);
    value_ = value;
    return true;
  }

  bool change_a_kind() {
    bool gained = false;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      for (std::size_t kind = 0; kind < shares_.problem_.kind_count(); ++kind) {
        const ModelId model = waiting_[best_[i].waiting].model;
        if (KindId{kind} == best_[i].kind ||
            shares_.time_on_kind(model, KindId{kind}) == kInfinity) {
          continue;
        }
        Choices changed = best_;
        changed[i].kind = KindId{kind};
        gained |= offer(std::move(changed));
      }
    }
    return gained;
  }

  bool move_a_model() {
    bool gained = false;
    for (std::size_t from = 0; from < best_.size(); ++from) {
      for (std::size_t to = 0; to < best_.size(); ++to) {
        if (from == to) continue;
        Choices changed = best_;
        const Choice moved = changed[from];
        changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(from));
        changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(to), moved);
        gained |= offer(std::move(changed));
      }
    }
    return gained;
  }

  const ModelShares& shares_;
  const std::vector<WaitingModel>& waiting_;
  const Table<DeviceId, double>& busy_;
  std::size_t left_;
  Choices best_;
  double value_ = kInfinity;
};

std::vector<ModelStart> ModelShares::best(const std::vector<WaitingModel>& waiting,
                                          const Table<DeviceId, double>& busy,
                                          std::size_t evaluations, double least_gain) const {
  if (waiting.empty()) return {};
  return Search(*this, waiting, busy, evaluations).run(least_gain);
}

}  // namespace placewright
