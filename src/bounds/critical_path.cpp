#include "bounds/critical_path.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "problem/move_time.h"

namespace placewright {
namespace {

// So many devices of producers are asked, about a second; then transfers are left out.
constexpr std::uint64_t kMostAsked = 300'000'000;
constexpr std::size_t kOpsBetweenStops = 256;

// No link is faster for any tensor; 0 where some devices share a memory or the host is between
// them.
struct FastestLink {
  double latency = 0;
  double inverse_bandwidth = 0;

  explicit FastestLink(const Problem& problem) {
    if (problem.interconnect() == InterconnectKind::host || problem.has_shared_spaces()) return;
    latency = inverse_bandwidth = kInfinity;
    for (const Link& link : problem.draft().cluster.links) {
      latency = std::min(latency, link.latency);
      inverse_bandwidth = std::min(inverse_bandwidth, 1 / link.bandwidth);
    }
  }

  [[nodiscard]] double time(const Tensor& tensor) const {
    if (!tensor.link_times.empty() || latency == kInfinity) return 0;
    return latency + tensor.bytes * inverse_bandwidth;
  }
};

class EarliestEnds {
 public:
  EarliestEnds(const Problem& problem, const std::function<bool()>& stop)
      : problem_(problem),
        devices_(problem.device_count()),
        fastest_link_(problem),
        ends_(problem.op_count() * devices_, kInfinity),
        by_end_(problem.op_count() * devices_),
        anywhere_(problem.op_count(), kInfinity) {
    std::size_t added = 0;
    for (const OpId op : problem.topological_order()) {
      if (++added % kOpsBetweenStops == 0 && stop()) with_transfers_ = false;
      add(op);
    }
  }

  [[nodiscard]] double anywhere(OpId op) const { return anywhere_[op]; }

 private:
  [[nodiscard]] double at(OpId op, DeviceId device) const {
    return ends_[op.index() * devices_ + device.index()];
  }
  [[nodiscard]] std::span<DeviceId> by_end(OpId op) {
    return std::span(by_end_).subspan(op.index() * devices_, devices_);
  }

  void add(OpId op) {
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      double ready = problem_.model(problem_.op(op).model).arrival;
      for (const TensorId input : problem_.inputs(op)) {
        ready = std::max(ready, arrival(input, op, device));
      }
      const double end = ready + problem_.time(op, device);
      ends_[op.index() * devices_ + device.index()] = end;
      anywhere_[op] = std::min(anywhere_[op], end);
    }
    if (!with_transfers_) return;
    with_transfers_ = asked_ < kMostAsked;
    std::ranges::copy(problem_.devices(), by_end(op).begin());
    std::ranges::sort(by_end(op), {}, [&](DeviceId device) { return at(op, device); });
  }

  [[nodiscard]] double arrival(TensorId input, OpId reader, DeviceId device) {
    const OpId producer = problem_.producer(input);
    if (problem_.group(producer) == problem_.group(reader)) return at(producer, device);
    if (!with_transfers_) return anywhere(producer);
    double earliest = at(producer, device);
    const double least_move = fastest_link_.time(problem_.tensor(input));
    for (const DeviceId from : by_end(producer)) {
      ++asked_;
      const double end = at(producer, from);
      if (end + least_move >= earliest) break;
      earliest = std::min(earliest, end + move_time(problem_, input, from, device));
    }
    return earliest;
  }

  const Problem& problem_;
  std::size_t devices_;
  FastestLink fastest_link_;
  std::vector<double> ends_;      // op x device
  std::vector<DeviceId> by_end_;  // op x device, in the order of its ends
  Table<OpId, double> anywhere_;  // the least of an op's ends
  bool with_transfers_ = true;    // so far
  std::uint64_t asked_ = 0;
};

}  // namespace

Table<ModelId, double> critical_paths(const Problem& problem, const std::function<bool()>& stop) {
  const EarliestEnds ends(problem, stop);
  Table<ModelId, double> longest(problem.model_count());
  for (const ModelId model : problem.models()) longest[model] = problem.model(model).arrival;
  for (const OpId op : problem.ops()) {
    double& path = longest[problem.op(op).model];
    path = std::max(path, ends.anywhere(op));
  }
  return longest;
}

}  // namespace placewright
