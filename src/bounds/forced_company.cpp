#include "bounds/forced_company.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bounds/earliest_starts.h"
#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr std::size_t kMostCells = 100'000;  // ops x devices
constexpr int kMostRounds = 4;               // of one test
constexpr double kFirstStep = 0.02;          // of the value that was impossible
constexpr double kPrecision = 5e-4;
constexpr double kHopeless = 1e6;
constexpr int kRoundsOfGuess = 2;  // of the two ways of an edge
constexpr std::size_t kRoundsOfDecision = 2 * kRoundsOfGuess + kMostRounds;
constexpr std::size_t kMostSpent = 30'000;  // ops x devices that differ, for the edges of one test

// Devices differ in name only where all transfers take the same between any two, the kind is the
// same, and so is what may run there.
std::vector<DeviceId> likeness(const Problem& problem) {
  std::vector<DeviceId> like(problem.devices().begin(), problem.devices().end());
  for (const TensorId tensor : problem.tensors()) {
    const double time = move_time(problem, tensor, DeviceId{0}, DeviceId{1});
    for (const DeviceId from : problem.devices()) {
      for (const DeviceId to : problem.devices()) {
        if (from != to && move_time(problem, tensor, from, to) != time) return like;
      }
    }
  }
  for (const DeviceId device : problem.devices()) {
    for (const DeviceId other : problem.devices()) {
      if (other == device) break;
      const auto same = [&](GroupId group) {
        return problem.group_allowed(group, device) == problem.group_allowed(group, other);
      };
      if (problem.kind_of(device) != problem.kind_of(other)) continue;
      if (!std::ranges::all_of(problem.groups(), same)) continue;
      like[device.index()] = like[other.index()];
      break;
    }
  }
  return like;
}

class Company {
 public:
  Company(const Problem& problem, const std::function<bool()>& stop)
      : problem_(problem),
        stop_(stop),
        forward_(problem, Direction::forward),
        backward_(problem, Direction::backward) {
    around_.devices = problem.device_count();
    around_.like = likeness(problem);
    std::size_t different = 0;
    for (const DeviceId device : problem.devices()) {
      different += around_.like[device.index()] == device ? 1 : 0;
    }
    cells_ = problem.op_count() * different;
    for (const TensorId tensor : problem.tensors()) edges_ += problem.consumers(tensor).size();
  }

  // Whether it is proved that no schedule ends by the value.
  bool impossible(double value) {
    begin();
    const double limit = value * (1 + kSearchRounding);
    if (contradicts(limit, kMostRounds)) return true;
    return !stopped_ && pays_or_shares(limit);
  }

  [[nodiscard]] bool stopped() const { return stopped_; }
  // After a test that went to its end and left its value possible.
  [[nodiscard]] CompanyFacts facts() const {
    return {around_, forward_.starts(), backward_.starts()};
  }

 private:
  // Draws conclusions until there are no more, or for so many rounds; true: nothing is left.
  bool contradicts(double limit, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      spent_ += cells_;
      stopped_ = !forward_.compute(around_, stop_) || !backward_.compute(around_, stop_);
      if (stopped_) return false;
      changed_ = false;
      if (!leave_out_late(limit) || !contract(limit) || !fit_clusters(limit)) return true;
      if (!changed_) return false;
    }
    return false;
  }

  // An edge is paid, or both ends share a device. Where one of the two is impossible the other
  // holds, as long as the work that is spent on it allows.
  bool pays_or_shares(double limit) {
    const std::size_t most = spent_ + kMostSpent;
    bool learned = true;
    bool guessed = false;
    while (std::exchange(learned, false)) {
      std::size_t edge = 0;
      for (const TensorId tensor : problem_.tensors()) {
        for (const OpId reader : problem_.consumers(tensor)) {
          const std::size_t number = edge++;
          const OpId producer = problem_.producer(tensor);
          if (spent_ + kRoundsOfDecision * cells_ > most || stopped_) {
            return guessed && ends(limit);
          }
          if (around_.apart[number] || are_together(producer, reader)) continue;
          guessed = true;
          if (!decide(number, producer, reader, limit)) continue;
          learned = true;
          if (contradicts(limit, kMostRounds)) return true;
        }
      }
    }
    return guessed && ends(limit);
  }

  // So that what is known of starts is that of what is known of edges.
  bool ends(double limit) { return !stopped_ && contradicts(limit, 1); }

  // Whether one of both is impossible; then the other is taken over.
  bool decide(std::size_t edge, OpId producer, OpId reader, double limit) {
    const Surroundings before = around_;
    join(producer, reader);
    const bool never_together = contradicts(limit, kRoundsOfGuess);
    around_ = before;
    if (never_together) {
      around_.apart[edge] = 1;
      return true;
    }
    around_.apart[edge] = 1;
    const bool never_apart = contradicts(limit, kRoundsOfGuess);
    around_ = before;
    if (never_apart) join(producer, reader);
    return never_apart;
  }

  [[nodiscard]] bool are_together(OpId a, OpId b) const {
    return around_.together[a.index()] == around_.together[b.index()];
  }
  void join(OpId a, OpId b) {
    const auto [low, high] = std::minmax(around_.together[a.index()], around_.together[b.index()]);
    std::replace(around_.together.begin(), around_.together.end(), std::size_t{high},
                 std::size_t{low});
  }

  void begin() {
    around_.apart.assign(edges_, 0);
    around_.allowed.assign(problem_.op_count() * around_.devices, 0);
    around_.together.resize(problem_.op_count());
    for (const OpId op : problem_.ops()) {
      around_.together[op.index()] = problem_.group(op).index();
      for (const DeviceId device : problem_.devices()) {
        if (problem_.allowed(op, device)) allowed(op, device) = 1;
      }
    }
  }

  char& allowed(OpId op, DeviceId device) {
    return around_.allowed[op.index() * around_.devices + device.index()];
  }

  // From the start of everything to its end, with the op on the device.
  [[nodiscard]] double through(OpId op, DeviceId device) const {
    return forward_.end(op, device) + backward_.start(op, device);
  }

  void forbid(OpId op, DeviceId device) {
    allowed(op, device) = 0;
    changed_ = true;
  }

  bool leave_out_late(double limit) {
    for (const OpId op : problem_.ops()) {
      bool somewhere = false;
      for (const DeviceId device : problem_.devices()) {
        if (!around_.may(op, device)) continue;
        if (through(op, device) > limit) {
          forbid(op, device);
        } else {
          somewhere = true;
        }
      }
      if (!somewhere) return false;
    }
    return true;
  }

  // Whether the tensor has time to go from one device to another.
  [[nodiscard]] bool may_travel(TensorId tensor, OpId producer, OpId reader, double limit) const {
    for (const DeviceId from : problem_.devices()) {
      if (!around_.may(producer, from)) continue;
      const double end = forward_.end(producer, from);
      for (const DeviceId to : problem_.devices()) {
        if (from == to || !around_.may(reader, to)) continue;
        const double rest = backward_.end(reader, to);
        if (end + rest > limit) continue;
        if (end + move_time(problem_, tensor, from, to) + rest <= limit) return true;
      }
    }
    return false;
  }

  // False: an edge has to be paid, and there is no time for it.
  bool contract(double limit) {
    std::size_t edge = 0;
    for (const TensorId tensor : problem_.tensors()) {
      const OpId producer = problem_.producer(tensor);
      for (const OpId reader : problem_.consumers(tensor)) {
        const bool apart = around_.apart[edge++] != 0;
        if (!are_together(producer, reader)) {
          if (may_travel(tensor, producer, reader, limit)) continue;
          join(producer, reader);
          changed_ = true;
        }
        if (apart) return false;
      }
    }
    return true;
  }

  // Each cluster needs a device on which all its ops are in time, one after the other; and so do
  // ops that have the same single device left.
  bool fit_clusters(double limit) {
    std::vector<std::vector<OpId>> clusters(problem_.group_count());
    for (const OpId op : problem_.ops()) clusters[around_.together[op.index()]].push_back(op);
    for (const std::vector<OpId>& cluster : clusters) {
      if (cluster.size() < 2) continue;
      bool somewhere = false;
      std::vector<char> fit(problem_.device_count(), 0);
      for (const DeviceId device : problem_.devices()) {
        const DeviceId like = around_.like[device.index()];
        fit[device.index()] = like == device ? fits(cluster, device, limit) : fit[like.index()];
        if (fit[device.index()]) {
          somewhere = true;
          continue;
        }
        for (const OpId op : cluster) {
          if (around_.may(op, device)) forbid(op, device);
        }
      }
      if (!somewhere) return false;
    }
    return fixed_ops_fit(limit);
  }

  bool fits(const std::vector<OpId>& ops, DeviceId device, double limit) {
    jobs_.clear();
    for (const OpId op : ops) {
      if (!around_.may(op, device)) return false;
      jobs_.push_back({forward_.start(op, device), problem_.time(op, device),
                       limit - backward_.start(op, device)});
    }
    return least_lateness(jobs_) <= 0;
  }

  bool fixed_ops_fit(double limit) {
    std::vector<std::vector<OpId>> fixed(problem_.device_count());
    for (const OpId op : problem_.ops()) {
      std::optional<DeviceId> only;
      int count = 0;
      for (const DeviceId device : problem_.devices()) {
        if (!around_.may(op, device)) continue;
        only = device;
        ++count;
      }
      if (count == 1) fixed[only->index()].push_back(op);
    }
    for (const DeviceId device : problem_.devices()) {
      if (fixed[device.index()].size() > 1 && !fits(fixed[device.index()], device, limit)) {
        return false;
      }
    }
    return true;
  }

  const Problem& problem_;
  const std::function<bool()>& stop_;
  EarliestStarts forward_;
  EarliestStarts backward_;
  Surroundings around_;
  std::size_t edges_ = 0;
  std::size_t cells_ = 0;  // ops x devices that differ
  std::size_t spent_ = 0;  // cells looked at so far
  bool changed_ = false;
  bool stopped_ = false;
  std::vector<MachineJob> jobs_;
};

}  // namespace

std::string refuses_forced_company(const Problem& problem) {
  if (problem.objective() != Objective::latency) return "it knows latency only";
  if (problem.device_count() < 2) return "there is one device";
  if (problem.has_shared_spaces()) return "devices share a memory space";
  for (const DeviceId device : problem.devices()) {
    if (useful_lanes(problem, device) > 1) return "a device runs several ops at once";
  }
  if (problem.op_count() * problem.device_count() > kMostCells) return "the problem is too large";
  return {};
}

std::optional<CompanyFacts> company_facts(const Problem& problem, double value,
                                          const std::function<bool()>& stop) {
  if (!refuses_forced_company(problem).empty()) return std::nullopt;
  Company company(problem, stop);
  if (company.impossible(value) || company.stopped()) return std::nullopt;
  return company.facts();
}

double forced_company_bound(const Problem& problem, double at_least,
                            const std::function<bool()>& stop) {
  if (!refuses_forced_company(problem).empty() || !(at_least > 0)) return at_least;
  Company company(problem, stop);
  double low = at_least;
  if (!company.impossible(low)) return at_least;
  double step = kFirstStep;
  double high = low * (1 + step);
  while (company.impossible(high)) {
    low = high;
    // Nothing is possible, which is not for a bound to say.
    if (low > kHopeless * at_least) return at_least;
    step *= 2;
    high = low * (1 + step);
  }
  while (high - low > kPrecision * low && !stop()) {
    const double middle = (low + high) / 2;
    (company.impossible(middle) ? low : high) = middle;
  }
  return safe_search(low);
}

}  // namespace placewright
