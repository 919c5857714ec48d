#include "support/brute_force_calls.h"

#include <algorithm>
#include <set>
#include <vector>

#include "support/brute_force.h"

namespace placewright::testing {
namespace {

// Units are the calls of accelerators, numbered device x calls + call, then the ops.
class Splits {
 public:
  Splits(const Problem& problem, const Placement& placement)
      : problem_(problem),
        placement_(placement),
        calls_(static_cast<std::size_t>(problem.rules().calls_per_device)),
        unit_(problem.op_count(), 0) {}

  double least() {
    split(0);
    return least_;
  }

 private:
  [[nodiscard]] std::size_t call_units() const { return problem_.device_count() * calls_; }

  void split(std::size_t index) {
    if (index == problem_.op_count()) {
      least_ = std::min(least_, latency());
      return;
    }
    const OpId op{index};
    const DeviceId device = placement_[op];
    if (problem_.on_host(device)) {
      unit_[op] = call_units() + index;
      split(index + 1);
      return;
    }
    for (std::size_t call = 0; call < calls_; ++call) {
      unit_[op] = device.index() * calls_ + call;
      split(index + 1);
    }
  }

  [[nodiscard]] std::vector<double> durations() const {
    std::vector<double> duration(call_units() + problem_.op_count(), 0);
    for (const OpId op : problem_.ops()) duration[unit_[op]] += problem_.time(op, placement_[op]);
    for (const TensorId tensor : problem_.tensors()) {
      const OpId producer = problem_.producer(tensor);
      std::set<std::size_t> readers;
      for (const OpId consumer : problem_.consumers(tensor)) readers.insert(unit_[consumer]);
      readers.erase(unit_[producer]);
      if (readers.empty()) continue;
      const double time = problem_.host_time(tensor);
      if (unit_[producer] < call_units()) {
        duration[unit_[producer]] += time + problem_.send_overhead(tensor, placement_[producer]);
      }
      for (const std::size_t reader : readers) {
        if (reader >= call_units()) continue;
        duration[reader] += time + problem_.receive_overhead(tensor, DeviceId{reader / calls_});
      }
    }
    return duration;
  }

  [[nodiscard]] std::set<std::pair<std::size_t, std::size_t>> waits() const {
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    for (const OpId op : problem_.ops()) {
      for (const OpId next : problem_.successors(op)) {
        if (unit_[op] != unit_[next]) pairs.emplace(unit_[op], unit_[next]);
      }
    }
    for (const DeviceId device : problem_.devices()) {
      for (std::size_t later = 1; later < calls_; ++later) {
        for (std::size_t call = 0; call < later; ++call) {
          pairs.emplace(device.index() * calls_ + call, device.index() * calls_ + later);
        }
      }
    }
    return pairs;
  }

  [[nodiscard]] double latency() const {
    const std::vector<double> duration = durations();
    auto pairs = waits();
    std::vector<double> ready(duration.size(), 0);
    std::set<std::size_t> left;
    for (std::size_t unit = 0; unit < duration.size(); ++unit) left.insert(unit);
    double latest = 0;
    while (!left.empty()) {
      const auto free = std::ranges::find_if(left, [&](std::size_t unit) {
        return std::ranges::none_of(pairs, [&](const auto& pair) { return pair.second == unit; });
      });
      if (free == left.end()) return kInfinity;
      const std::size_t unit = *free;
      left.erase(free);
      const double end = ready[unit] + duration[unit];
      latest = std::max(latest, end);
      for (const auto& [before, after] : pairs) {
        if (before == unit) ready[after] = std::max(ready[after], end);
      }
      std::erase_if(pairs, [&](const auto& pair) { return pair.first == unit; });
    }
    return latest;
  }

  const Problem& problem_;
  const Placement& placement_;
  std::size_t calls_;
  Table<OpId, std::size_t> unit_;
  double least_ = kInfinity;
};

}  // namespace

std::optional<double> brute_force_call_latency(const Problem& problem) {
  double least = kInfinity;
  for_each_placement(problem, [&](const Placement& placement) {
    least = std::min(least, Splits(problem, placement).least());
  });
  if (least == kInfinity) return std::nullopt;
  return least;
}

}  // namespace placewright::testing
