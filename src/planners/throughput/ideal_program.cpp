#include "planners/throughput/ideal_program.h"

#include <algorithm>
#include <cmath>

namespace placewright::throughput {
namespace {

// Windows are widened by this much, so that rounding never loses an ideal.
constexpr double kWindowSlack = 1 + 1e-9;

// The devices that a stage takes: one, or several of a kind.
struct Transition {
  std::vector<std::size_t> devices;  // a class for each, the one whose overheads count first
  std::size_t stride = 0;            // difference of usage numbers
  double rate = 0;                   // of all of them

  [[nodiscard]] int replicas() const { return static_cast<int>(devices.size()); }
};

// Mixed-radix numbers: digit c counts the devices used of class c.
class Usages {
 public:
  explicit Usages(const StageModel& model) : model_(model) {
    std::size_t stride = 1;
    for (std::size_t c = 0; c < model.classes().size(); ++c) {
      const std::size_t devices = model.classes()[c].devices.size();
      strides_.push_back(stride);
      stride *= devices + 1;
    }
    count_ = stride;
    for (std::size_t c = 0; c < model.classes().size(); ++c) add_replicas({c}, 0);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<Transition>& transitions() const { return transitions_; }
  [[nodiscard]] std::size_t used(std::size_t usage, std::size_t device_class) const {
    return usage / strides_[device_class] % (model_.classes()[device_class].devices.size() + 1);
  }
  [[nodiscard]] bool allows(std::size_t usage, const Transition& transition) const {
    return std::all_of(transition.devices.begin(), transition.devices.end(), [&](std::size_t c) {
      return used(usage, c) >= static_cast<std::size_t>(std::count(transition.devices.begin(),
                                                                   transition.devices.end(), c));
    });
  }
  [[nodiscard]] double rate(std::size_t usage) const {
    double rate = 0;
    for (std::size_t c = 0; c < strides_.size(); ++c) {
      rate += model_.classes()[c].rate * static_cast<double>(used(usage, c));
    }
    return rate;
  }
  [[nodiscard]] WorkWindow window(std::size_t usage, double cutoff) const {
    const auto total = static_cast<double>(model_.total_work());
    const double reach = rate(usage) * cutoff * kWindowSlack;
    const double rest = (model_.total_rate() - rate(usage)) * cutoff * kWindowSlack;
    return {static_cast<std::int64_t>(std::max(0.0, std::floor(total - rest))),
            static_cast<std::int64_t>(std::min(total, std::ceil(reach)))};
  }

 private:
  // The devices as they are, and with more of the same kind behind them (classes ascending).
  void add_replicas(std::vector<std::size_t> devices, std::size_t from) {
    const auto& classes = model_.classes();
    Transition transition;
    transition.devices = devices;
    for (const std::size_t c : devices) {
      transition.stride += strides_[c];
      transition.rate += classes[c].rate;
    }
    transitions_.push_back(std::move(transition));
    if (static_cast<int>(devices.size()) >= model_.max_replicas()) return;
    for (std::size_t c = from; c < classes.size(); ++c) {
      const auto taken = static_cast<std::size_t>(std::count(devices.begin(), devices.end(), c));
      if (taken == classes[c].devices.size() || !model_.same_kind(c, devices.front())) continue;
      devices.push_back(c);
      add_replicas(devices, c);
      devices.pop_back();
    }
  }

  const StageModel& model_;
  std::vector<std::size_t> strides_;
  std::vector<Transition> transitions_;
  std::size_t count_ = 1;
};

// Loads of stages I \ J for one I after the other.
class StageLoads {
 public:
  explicit StageLoads(const IdealFamily& family) : family_(family), model_(family.model()) {}

  void set_outer(std::size_t ideal) {
    outer_ = ideal;
    cut_known_ = false;
  }

  // Whether all the devices can run the blocks of I \ J within their memory. J must be inside I.
  [[nodiscard]] bool fits(std::size_t inner, const Transition& transition) const {
    return std::all_of(transition.devices.begin(), transition.devices.end(),
                       [&](std::size_t c) { return fits(inner, c); });
  }
  [[nodiscard]] bool fits(std::size_t inner, std::size_t device_class) const {
    if (family_.forbidden(outer_, device_class) != family_.forbidden(inner, device_class)) {
      return false;
    }
    const double memory = model_.classes()[device_class].memory;
    if (memory == kInfinity) return true;
    return stage_bytes(inner) <= memory * (1 + 1e-9);
  }

  [[nodiscard]] double stage_bytes(std::size_t inner) const {
    double bytes = family_.bytes(outer_) - family_.bytes(inner);
    for (const StageModel::Weight& weight : model_.weights()) {
      const bool read = std::any_of(weight.blocks.begin(), weight.blocks.end(),
                                    [&](std::uint32_t block) { return inside(block, inner); });
      if (read) bytes += weight.bytes;
    }
    return bytes;
  }

  [[nodiscard]] StageLoad load(std::size_t inner, const Transition& transition) {
    const std::size_t device_class = transition.devices.front();
    const int replicas = transition.replicas();
    const DeviceClass& kind = model_.classes()[device_class];
    const double forward =
        family_.forward(outer_, device_class) - family_.forward(inner, device_class);
    const double backward =
        family_.backward(outer_, device_class) - family_.backward(inner, device_class);
    const double bytes = replicas > 1 ? stage_bytes(inner) : 0;
    if (kind.profile < 0) return model_.load(forward, backward, nullptr, bytes, replicas);
    const Transfers moved = transfers(inner, static_cast<std::size_t>(kind.profile));
    return model_.load(forward, backward, moved.data(), bytes, replicas);
  }

 private:
  [[nodiscard]] bool inside(std::uint32_t block, std::size_t inner) const {
    return family_.contains(outer_, block) && !family_.contains(inner, block);
  }

  [[nodiscard]] Transfers transfers(std::size_t inner, std::size_t profile) {
    if (!cut_known_) {
      cut_.clear();
      family_.cut_nets(outer_, cut_);
      cut_known_ = true;
    }
    const std::size_t components = model_.component_count();
    Transfers sum{};
    std::copy_n(family_.above(inner) + profile * components, components, sum.begin());
    const auto in_stage = [&](std::uint32_t block) { return inside(block, inner); };
    const auto in_rest = [&](std::uint32_t block) { return !family_.contains(inner, block); };
    for (const std::uint32_t net : cut_) {
      model_.charge(net, profile, in_stage, 1, sum.data());
      model_.charge(net, profile, in_rest, -1, sum.data());
    }
    return sum;
  }

  const IdealFamily& family_;
  const StageModel& model_;
  std::size_t outer_ = 0;
  bool cut_known_ = false;
  std::vector<std::uint32_t> cut_;
};

// Ideals of a usage's window: a range of numbers, with a label each.
template <class Label>
struct Layer {
  std::size_t first = 0;
  std::size_t last = 0;  // one past
  double rate = 0;
  std::vector<Label> labels;

  [[nodiscard]] bool holds(std::size_t ideal) const { return ideal >= first && ideal < last; }
  [[nodiscard]] Label& at(std::size_t ideal) { return labels[ideal - first]; }
  [[nodiscard]] const Label& at(std::size_t ideal) const { return labels[ideal - first]; }
};

// What scalar and paired labels have in common: layers, ranges of sources, the order of search.
template <class Label>
class Program {
 public:
  Program(const IdealFamily& family, double cutoff, double enough, Control& control)
      : family_(family),
        model_(family.model()),
        usages_(model_),
        cutoff_(cutoff),
        enough_(enough),
        control_(control),
        loads_(family) {
    const auto work = family.work();
    for (std::size_t usage = 0; usage < usages_.count(); ++usage) {
      const WorkWindow window = usages_.window(usage, cutoff);
      Layer<Label> layer;
      layer.rate = usages_.rate(usage);
      if (window.least <= window.most) {
        layer.first = static_cast<std::size_t>(
            std::lower_bound(work.begin(), work.end(), window.least) - work.begin());
        layer.last = static_cast<std::size_t>(
            std::upper_bound(work.begin(), work.end(), window.most) - work.begin());
      }
      layers_.push_back(std::move(layer));
    }
  }

 protected:
  // Calls `visit(source)` outwards from the balanced split while the stage's work may stay below
  // `limit()`.
  template <class Visit, class Limit>
  void for_each_source(std::size_t ideal, std::size_t usage, const Transition& transition,
                       Visit visit, Limit limit) const {
    const Layer<Label>& sources = layers_[usage - transition.stride];
    const auto work = family_.work();
    const std::size_t end = std::min(sources.last, ideal);
    if (sources.first >= end) return;
    const double rate = transition.rate * kWindowSlack;
    const double own = static_cast<double>(work[ideal]);
    const double share = layers_[usage].rate > 0 ? sources.rate / layers_[usage].rate : 0;
    const auto balanced = static_cast<std::int64_t>(own * share);
    const auto middle = static_cast<std::size_t>(
        std::lower_bound(work.begin() + static_cast<std::ptrdiff_t>(sources.first),
                         work.begin() + static_cast<std::ptrdiff_t>(end), balanced) -
        work.begin());
    for (std::size_t source = middle; source-- > sources.first;) {
      if (own - static_cast<double>(work[source]) > rate * limit() + 1) break;
      visit(source);
    }
    for (std::size_t source = middle; source < end; ++source) {
      if (own - static_cast<double>(work[source]) > rate * limit() + 1) continue;
      visit(source);
    }
  }

  const IdealFamily& family_;
  const StageModel& model_;
  Usages usages_;
  double cutoff_;
  double enough_;
  Control& control_;
  StageLoads loads_;
  std::vector<Layer<Label>> layers_;
};

struct ScalarLabel {
  double value = kInfinity;
  std::uint32_t source = 0;
  std::uint32_t transition = 0;
};

class ScalarProgram : Program<ScalarLabel> {
 public:
  using Program::Program;

  ProgramResult run() {
    for (auto& layer : layers_) layer.labels.assign(layer.last - layer.first, {});
    if (layers_[0].holds(0)) layers_[0].at(0).value = 0;
    for (std::size_t ideal = 1; ideal < family_.size(); ++ideal) {
      if (control_.should_stop(1)) return {};
      loads_.set_outer(ideal);
      for (std::size_t usage = 1; usage < usages_.count(); ++usage) {
        if (layers_[usage].holds(ideal)) improve(ideal, usage);
      }
    }
    return {true, best()};
  }

 private:
  // What the label must beat to be of use: the cutoff, and labels with fewer devices.
  [[nodiscard]] double to_beat(std::size_t ideal, std::size_t usage) const {
    double least = cutoff_;
    for (const Transition& transition : usages_.transitions()) {
      if (transition.replicas() > 1 || !usages_.allows(usage, transition)) continue;
      const auto& layer = layers_[usage - transition.stride];
      if (!layer.holds(ideal)) continue;
      const ScalarLabel& label = layer.at(ideal);
      least = std::min(least, label.value);
    }
    return least;
  }

  void improve(std::size_t ideal, std::size_t usage) {
    double best = to_beat(ideal, usage);
    ScalarLabel label;
    const auto& transitions = usages_.transitions();
    for (std::uint32_t t = 0; t < transitions.size(); ++t) {
      const Transition& transition = transitions[t];
      if (best <= enough_) break;
      if (!usages_.allows(usage, transition)) continue;
      const Layer<ScalarLabel>& sources = layers_[usage - transition.stride];
      const auto visit = [&](std::size_t source) {
        const double before = sources.at(source).value;
        if (before >= best || best <= enough_) return;
        if (!family_.includes(ideal, source) || !loads_.fits(source, transition)) {
          return;
        }
        const double load = loads_.load(source, transition).first;
        const double value = std::max(before, load);
        if (value >= best) return;
        best = value;
        label = {value, static_cast<std::uint32_t>(source), t};
      };
      for_each_source(ideal, usage, transition, visit, [&] { return best; });
    }
    if (label.value < kInfinity) {
      layers_[usage].at(ideal) = label;
    } else if (best < cutoff_) {
      // Fewer devices do as well; the label there is the one that counts.
      layers_[usage].at(ideal).value = kInfinity;
    }
  }

  [[nodiscard]] std::optional<Split> best() const {
    const std::size_t full = family_.size() - 1;
    std::size_t usage = 0;
    double value = cutoff_;
    for (std::size_t u = 0; u < usages_.count(); ++u) {
      if (!layers_[u].holds(full) || layers_[u].at(full).value >= value) continue;
      value = layers_[u].at(full).value;
      usage = u;
    }
    if (value >= cutoff_) return std::nullopt;
    Split split;
    split.value = value;
    std::size_t ideal = full;
    while (ideal != 0) {
      const ScalarLabel& label = layers_[usage].at(ideal);
      const Transition& transition = usages_.transitions()[label.transition];
      split.stages.push_back({family_.difference(ideal, label.source), transition.devices});
      usage -= transition.stride;
      ideal = label.source;
    }
    std::reverse(split.stages.begin(), split.stages.end());
    return split;
  }
};

struct PairLabel {
  double first = 0;
  double second = 0;
  std::uint32_t source = 0;
  std::uint32_t source_label = 0;
  std::uint32_t transition = 0;

  [[nodiscard]] double sum() const { return first + second; }
};

using PairLabels = std::vector<PairLabel>;

class PairProgram : Program<PairLabels> {
 public:
  using Program::Program;

  ProgramResult run() {
    for (auto& layer : layers_) layer.labels.assign(layer.last - layer.first, {});
    if (layers_[0].holds(0)) layers_[0].at(0).push_back({});
    for (std::size_t ideal = 1; ideal < family_.size(); ++ideal) {
      if (control_.should_stop(1)) return {};
      loads_.set_outer(ideal);
      for (std::size_t usage = 1; usage < usages_.count(); ++usage) {
        if (layers_[usage].holds(ideal)) improve(ideal, usage);
      }
      if (ideal + 1 == family_.size()) break;
    }
    return {true, best()};
  }

 private:
  [[nodiscard]] static bool beaten(const PairLabels& labels, double first, double second) {
    return std::any_of(labels.begin(), labels.end(), [&](const PairLabel& known) {
      return known.first <= first && known.second <= second;
    });
  }

  [[nodiscard]] bool beaten_with_fewer(std::size_t ideal, std::size_t usage, double first,
                                       double second) const {
    for (const Transition& transition : usages_.transitions()) {
      if (transition.replicas() > 1 || !usages_.allows(usage, transition)) continue;
      const auto& layer = layers_[usage - transition.stride];
      if (layer.holds(ideal) && beaten(layer.at(ideal), first, second)) return true;
    }
    return false;
  }

  void improve(std::size_t ideal, std::size_t usage) {
    PairLabels& labels = layers_[usage].at(ideal);
    const auto& transitions = usages_.transitions();
    for (std::uint32_t t = 0; t < transitions.size(); ++t) {
      if (!usages_.allows(usage, transitions[t])) continue;
      const auto visit = [&](std::size_t source) { extend(labels, ideal, usage, source, t); };
      for_each_source(ideal, usage, transitions[t], visit, [&] { return cutoff_; });
    }
  }

  void extend(PairLabels& labels, std::size_t ideal, std::size_t usage, std::size_t source,
              std::uint32_t t) {
    const Transition& transition = usages_.transitions()[t];
    const PairLabels& before = layers_[usage - transition.stride].at(source);
    if (before.empty() || !family_.includes(ideal, source) || !loads_.fits(source, transition)) {
      return;
    }
    const StageLoad load = loads_.load(source, transition);
    if (load.sum() >= cutoff_) return;
    for (std::uint32_t i = 0; i < before.size(); ++i) {
      const double first = std::max(before[i].first, load.first);
      const double second = std::max(before[i].second, load.second);
      if (first + second >= cutoff_ || beaten(labels, first, second) ||
          beaten_with_fewer(ideal, usage, first, second)) {
        continue;
      }
      std::erase_if(labels, [&](const PairLabel& known) {
        return first <= known.first && second <= known.second;
      });
      labels.push_back({first, second, static_cast<std::uint32_t>(source), i, t});
    }
  }

  [[nodiscard]] std::optional<Split> best() const {
    const std::size_t full = family_.size() - 1;
    Split split;
    std::size_t usage = 0;
    const PairLabel* label = nullptr;
    for (std::size_t u = 0; u < usages_.count(); ++u) {
      if (!layers_[u].holds(full)) continue;
      for (const PairLabel& candidate : layers_[u].at(full)) {
        if (candidate.sum() >= split.value) continue;
        split.value = candidate.sum();
        label = &candidate;
        usage = u;
      }
    }
    if (label == nullptr) return std::nullopt;
    for (std::size_t ideal = full; ideal != 0;) {
      const Transition& transition = usages_.transitions()[label->transition];
      split.stages.push_back({family_.difference(ideal, label->source), transition.devices});
      usage -= transition.stride;
      ideal = label->source;
      label = &layers_[usage].at(ideal)[label->source_label];
    }
    std::reverse(split.stages.begin(), split.stages.end());
    return split;
  }
};

}  // namespace

double usage_count(const Problem& problem) {
  double count = 1;
  for (const std::vector<DeviceId>& alike : device_classes(problem)) {
    count *= static_cast<double>(alike.size() + 1);
  }
  return count;
}

std::vector<WorkWindow> work_windows(const StageModel& model, double cutoff) {
  const Usages usages(model);
  std::vector<WorkWindow> windows;
  for (std::size_t usage = 0; usage < usages.count(); ++usage) {
    const WorkWindow window = usages.window(usage, cutoff);
    if (window.least <= window.most) windows.push_back(window);
  }
  std::sort(windows.begin(), windows.end(),
            [](const WorkWindow& a, const WorkWindow& b) { return a.least < b.least; });
  std::vector<WorkWindow> merged;
  for (const WorkWindow& window : windows) {
    if (!merged.empty() && window.least <= merged.back().most) {
      merged.back().most = std::max(merged.back().most, window.most);
    } else {
      merged.push_back(window);
    }
  }
  return merged;
}

ProgramResult best_split(const IdealFamily& family, double cutoff, double enough,
                         Control& control) {
  if (family.size() < 2) return {true, std::nullopt};
  if (family.model().phased()) return PairProgram(family, cutoff, enough, control).run();
  return ScalarProgram(family, cutoff, enough, control).run();
}

}  // namespace placewright::throughput
