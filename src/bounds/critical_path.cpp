#include "bounds/critical_path.h"

#include <algorithm>
#include <vector>

#include "problem/move_time.h"

namespace placewright {
namespace {

// Above this many (edge, device, device) triples transfers are left out.
constexpr double kTransferWork = 5e7;

class EarliestEnds {
 public:
  explicit EarliestEnds(const Problem& problem)
      : problem_(problem),
        devices_(problem.device_count()),
        ends_(problem.op_count() * devices_, kInfinity),
        anywhere_(problem.op_count(), kInfinity),
        with_transfers_(static_cast<double>(problem.edge_count()) *
                            static_cast<double>(devices_ * devices_) <=
                        kTransferWork) {
    for (const OpId op : problem.topological_order()) add(op);
  }

  [[nodiscard]] double anywhere(OpId op) const { return anywhere_[op]; }

 private:
  [[nodiscard]] double at(OpId op, DeviceId device) const {
    return ends_[op.index() * devices_ + device.index()];
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
  }

  [[nodiscard]] double arrival(TensorId input, OpId reader, DeviceId device) const {
    const OpId producer = problem_.producer(input);
    if (problem_.group(producer) == problem_.group(reader)) return at(producer, device);
    if (!with_transfers_) return anywhere(producer);
    double earliest = kInfinity;
    for (const DeviceId from : problem_.devices()) {
      const double end = at(producer, from);
      if (end < earliest)
        earliest = std::min(earliest, end + move_time(problem_, input, from, device));
    }
    return earliest;
  }

  const Problem& problem_;
  std::size_t devices_;
  std::vector<double> ends_;      // op x device
  Table<OpId, double> anywhere_;  // the least of an op's ends
  bool with_transfers_;
};

}  // namespace

Table<ModelId, double> critical_paths(const Problem& problem) {
  const EarliestEnds ends(problem);
  Table<ModelId, double> longest(problem.model_count());
  for (const ModelId model : problem.models()) longest[model] = problem.model(model).arrival;
  for (const OpId op : problem.ops()) {
    double& path = longest[problem.op(op).model];
    path = std::max(path, ends.anywhere(op));
  }
  return longest;
}

}  // namespace placewright
