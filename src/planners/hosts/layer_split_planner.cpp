#include "planners/hosts/layer_split_planner.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

// Sums over the first layers.
struct Sums {
  std::vector<double> bytes = {0};  // weights and cache
  std::vector<double> experts = {0};
  std::vector<double> work = {0};

  explicit Sums(const LayeredModel& model) {
    for (const ModelLayer& layer : model.layers) {
      bytes.push_back(bytes.back() + layer.weights + layer.cache);
      experts.push_back(experts.back() + layer.experts);
      work.push_back(work.back() + layer.work);
    }
  }
};

double run_seconds(const Sums& sums, const HostTimes& times, std::size_t first, std::size_t middle,
                   std::size_t last) {
  const double apart = sums.work[middle] - sums.work[first];
  return (apart > 0 ? apart * times.experts_here : 0) +
         (sums.work[last] - sums.work[middle]) * times.layer;
}

class SplitSearch {
 public:
  SplitSearch(const LayeredModel& model, std::span<const ServingHost> hosts)
      : model_(model), hosts_(hosts), sums_(model), layers_(model.layers.size()) {
    for (const ModelLayer& layer : model.layers) {
      most_experts_ = std::max(most_experts_, layer.experts);
    }
    for (const ServingHost& host : hosts) {
      if (host.is_here()) here_ = host.memory;
    }
    slots_ = expert_slots(0);
    states_.resize((std::size_t{1} << hosts.size()) * (layers_ + 1) * (slots_ + 1));
  }

  LayerSplit best() {
    state(0, 0, slots_).seconds = 0;
    const std::size_t sets = std::size_t{1} << hosts_.size();
    for (std::size_t set = 0; set < sets; ++set) {
      for (std::size_t done = 0; done < layers_; ++done) {
        for (std::size_t slots = 0; slots <= slots_; ++slots) {
          if (state(set, done, slots).seconds < kInfinity) extend(set, done, slots);
        }
      }
    }
    return best_;
  }

 private:
  struct State {
    double seconds = kInfinity;
    HostShare share;        // the last one
    std::size_t slots = 0;  // before it
  };

  State& state(std::size_t set, std::size_t done, std::size_t slots) {
    return states_[(set * (layers_ + 1) + done) * (slots_ + 1) + slots];
  }

  // Layers whose experts still fit this machine beside so many layers of its own. With no limit one
  // slot stands for any number.
  [[nodiscard]] std::size_t expert_slots(std::size_t own) const {
    if (most_experts_ == 0 || here_ == kInfinity) return 0;
    const double left = here_ - sums_.bytes[own];
    if (left <= 0) return 0;
    return static_cast<std::size_t>(
        std::min(std::floor(left / most_experts_), static_cast<double>(layers_)));
  }
  [[nodiscard]] bool limited() const { return here_ < kInfinity; }

  void extend(std::size_t set, std::size_t done, std::size_t slots) {
    const double before = state(set, done, slots).seconds;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if ((set >> h & 1U) != 0 || (hosts_[h].is_here() && set != 0)) continue;
      for (std::size_t last = done + 1; last <= layers_; ++last) {
        const double run = sums_.bytes[last] - sums_.bytes[done];
        if (run - (sums_.experts[last] - sums_.experts[done]) > hosts_[h].memory) break;
        const double bytes = run + (last == layers_ ? model_.head : 0);
        add_runs({set, done, slots}, h, last, bytes, before);
      }
    }
  }

  struct From {
    std::size_t set;
    std::size_t done;
    std::size_t slots;
  };

  // The layers up to `last` on host h, with as few of their experts here as its memory allows, and
  // more where that is faster.
  void add_runs(const From& from, std::size_t h, std::size_t last, double bytes, double before) {
    const ServingHost& host = hosts_[h];
    const std::size_t count = last - from.done;
    const bool may = most_experts_ > 0 && !host.is_here() && host.times.experts_here < kInfinity;
    std::size_t most = may ? count : 0;
    if (may && limited()) most = std::min(most, from.slots);
    const double at_end = last == layers_ ? host.times.rest : host.times.entry;
    for (std::size_t apart = 0; apart <= most; ++apart) {
      const std::size_t middle = from.done + apart;
      const double moved = sums_.experts[middle] - sums_.experts[from.done];
      if (bytes - moved > host.memory) continue;
      const double seconds =
          before + at_end + run_seconds(sums_, host.times, from.done, middle, last);
      std::size_t slots = from.slots;
      if (host.is_here())
        slots = expert_slots(last);
      else if (limited())
        slots -= apart;
      reach(from, {h, count, apart}, last, slots, seconds);
      if (host.times.experts_here >= host.times.layer) break;
    }
  }

  void reach(const From& from, const HostShare& share, std::size_t last, std::size_t slots,
             double seconds) {
    State& next = state(from.set | std::size_t{1} << share.host, last, slots);
    if (seconds >= next.seconds) return;
    next = {seconds, share, from.slots};
    if (last == layers_ && seconds < best_seconds_) {
      best_seconds_ = seconds;
      best_ = path(from.set | std::size_t{1} << share.host, slots);
    }
  }

  LayerSplit path(std::size_t set, std::size_t slots) {
    LayerSplit split;
    for (std::size_t done = layers_; done > 0;) {
      const State& at = state(set, done, slots);
      split.push_back(at.share);
      set &= ~(std::size_t{1} << at.share.host);
      done -= at.share.layers;
      slots = at.slots;
    }
    std::ranges::reverse(split);
    return split;
  }

  const LayeredModel& model_;
  std::span<const ServingHost> hosts_;
  Sums sums_;
  std::size_t layers_;
  std::size_t slots_ = 0;
  double most_experts_ = 0;
  double here_ = kInfinity;  // memory of this machine
  std::vector<State> states_;
  double best_seconds_ = kInfinity;
  LayerSplit best_;
};

}  // namespace

double token_seconds_if_it_fits(const LayeredModel& model, std::span<const ServingHost> hosts,
                                const LayerSplit& split) {
  const Sums sums(model);
  double seconds = 0;
  std::size_t done = 0;
  for (const HostShare& share : split) {
    const HostTimes& times = hosts[share.host].times;
    const std::size_t last = done + share.layers;
    seconds += run_seconds(sums, times, done, done + share.experts_here, last) +
               (last == model.layers.size() ? times.rest : times.entry);
    done = last;
  }
  return done == model.layers.size() ? seconds : kInfinity;
}

double token_seconds(const LayeredModel& model, std::span<const ServingHost> hosts,
                     const LayerSplit& split) {
  const Sums sums(model);
  double here = 0;
  double memory = kInfinity;
  for (const ServingHost& host : hosts) {
    if (host.is_here()) memory = host.memory;
  }
  std::size_t done = 0;
  for (const HostShare& share : split) {
    const std::size_t last = done + share.layers;
    const double moved = sums.experts[done + share.experts_here] - sums.experts[done];
    const double bytes = sums.bytes[last] - sums.bytes[done] - moved +
                         (last == model.layers.size() ? model.head : 0);
    if (bytes > hosts[share.host].memory) return kInfinity;
    here += moved + (hosts[share.host].is_here() ? bytes : 0);
    done = last;
  }
  return here > memory ? kInfinity : token_seconds_if_it_fits(model, hosts, split);
}

LayerSplit best_layer_split(const LayeredModel& model, std::span<const ServingHost> hosts) {
  return SplitSearch(model, hosts).best();
}

// As `load_tensors` of llama.cpp: the head counts as a layer, and layer i goes to the first host
// whose cumulated share is above i / (layers + 1).
LayerSplit split_by_memory(const LayeredModel& model, std::span<const ServingHost> hosts) {
  double total = 0;
  for (const ServingHost& host : hosts) total += host.is_here() ? 0 : host.memory;
  const std::size_t count = model.layers.size();
  LayerSplit split;
  double sum = 0;
  std::size_t done = 0;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (hosts[h].is_here()) continue;
    sum += hosts[h].memory;
    std::size_t last = done;
    while (last < count &&
           static_cast<double>(last) / static_cast<double>(count + 1) < sum / total) {
      ++last;
    }
    if (last > done) split.push_back({h, last - done, 0});
    done = last;
  }
  return split;
}

}  // namespace placewright
