// FlowRule: which ready ops start where, by weighted speed-up and min-cost flow (Talos).
//
// At each event the ready ops form a layer. For an op and a device
//
//   cost = max(0, wt + ct + et - maxPt)
//
// wt: until the device has a free lane; ct: until the inputs are there; et: execution; maxPt: the
// longest other ready op of the same model, which can run in parallel, where the op is on the
// model's longest path of what is left, else 0. The weighted speed-up of a device is
// cost(op, reference) / cost(op, device). The layer is shared out by a min-cost flow
// (layer_flow.h): the arc from an op to a device costs minus the weighted speed-up times the
// model's weight; an idle device has room for as many ops as it has free lanes, a busy one for one
// op in its queue. Every op may also be left for later, at a weighted speed-up that is lower the
// more of the shortest other model would go before it, compared with what is left of its own model
// (of a single model: if one more op went before it). Ops that the flow gives to idle devices
// start. The others, among them those that do better to wait for a busy faster device, are shared
// out again at the next event.
//
// What leaving an op for later costs is ours; the publication does not say
// (docs/results/several-models.md has the variants that were tried).
//
// Between events only the ops and devices that changed are changed in the flow.
// O(ready x devices) for the costs and one shortest path for each change.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/flow/layer_flow.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/event_run.h"
#include "planners/methods/speed_up.h"
#include "problem/problem.h"

namespace placewright {

// What the costs need of a problem, the same at every event.
class FlowCosts {
 public:
  explicit FlowCosts(const Problem& problem);

  [[nodiscard]] const SpeedUps& speed_ups() const { return speed_ups_; }
  [[nodiscard]] double fastest(OpId op) const { return fastest_[op]; }
  // The longest path from the op's start to the end of its model, each op at its fastest.
  [[nodiscard]] double tail(OpId op) const { return tail_[op]; }
  // Where the op may run, where neither memory nor colocation can ever change that; else empty.
  [[nodiscard]] std::span<const DeviceId> settled_candidates(OpId op) const {
    return settled_ ? candidates_[op] : std::span<const DeviceId>{};
  }

 private:
  SpeedUps speed_ups_;
  Table<OpId, double> fastest_;
  Table<OpId, double> tail_;
  bool settled_;
  Rows<OpId, DeviceId> candidates_;
};

class FlowRule {
 public:
  static constexpr std::size_t kWholeLayer = static_cast<std::size_t>(-1);

  // Of a layer with more than `most_ready` ops, those with the longest tails are looked at.
  FlowRule(const Problem& problem, const FlowCosts& costs, DeviceChoice& choice,
           std::size_t most_ready = kWholeLayer);

  // Starts what the flow says. Where nothing is running or to come, at least one op.
  void operator()(EventRun& run);

  // Forget the flow: the next event builds it from nothing.
  void reset();

 private:
  static constexpr std::size_t kNone = LayerFlow::kNowhere;

  [[nodiscard]] std::span<const DeviceId> candidates(OpId op) const;
  void take_layer(const EventRun& run);
  void look_at_layer();
  void fill_row(const EventRun& run, OpId op);
  [[nodiscard]] double hidden(OpId op) const;
  [[nodiscard]] std::optional<double> share_when_later(ModelId model) const;
  void update_flow(const EventRun& run);
  void start(EventRun& run, OpId op, DeviceId device);
  void start_cheapest(EventRun& run);

  const Problem& problem_;
  const FlowCosts& costs_;
  DeviceChoice& choice_;
  std::size_t most_ready_;
  LayerFlow flow_;
  Table<OpId, std::size_t> number_;  // in the flow; kNone: not there
  std::vector<std::int64_t> room_;   // by device, as the flow knows it
  std::vector<double> row_;
  std::vector<double> time_row_;
  std::vector<OpId> layer_;
  std::vector<OpId> last_layer_;

  // Of the layer, by model: the longest tail and the two longest ops; by device the two quickest.
  struct Longest {
    double tail = 0;
    double first = 0;
    double second = 0;
    OpId first_op;
  };
  struct Quickest {
    double first = kInfinity;
    double second = kInfinity;
    OpId first_op;
  };
  Table<ModelId, Longest> longest_;
  Table<DeviceId, Quickest> quickest_;
  // The least of the models' longest tails, whose it is, and the least of the others.
  double shortest_ = kInfinity;
  double second_shortest_ = kInfinity;
  ModelId shortest_model_;
};

}  // namespace placewright
