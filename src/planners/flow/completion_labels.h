// Exact search for total completion by labels over down-sets.
//
// Ops are appended one at a time, each to a device, as early as its inputs and the device's lanes
// allow; sorted by start, every best schedule is made so. What is done is a down-set of the graph,
// and how it was done matters only through
//
//   * when each lane is free
//   * when each tensor that is still to be read is where
//   * how far the models that are not complete have come, and the cost of those that are
//
// Of two labels of one down-set, one that is no worse in all of these has no worse completions, so
// the other is dropped. Times that cannot matter are first raised to where they would (a lane that
// is free before anything is ready; a tensor that is there before any lane is free), which makes
// many labels comparable. A label is also dropped where its cost and a lower bound on the rest
// reach the cutoff: the order of completion as in bounds/completion_order.h, with the work that is
// left and the lanes as they are.
//
// Down-sets are taken by size, so memory holds two layers and one small record for each label ever
// kept. Exponential in the number of models and in the width of the graphs; two chains of 25 and 39
// ops take a fraction of a second.
//
// Not for: ports that transfers wait for (congestion, where two transfers may meet), memory that
// binds, cut overheads, colocation of ops. `obstacle` says which.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bounds/completion_order.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

class CompletionLabels {
 public:
  using Stop = std::function<bool(std::uint64_t labels)>;

  // Why the search does not fit the problem, in a few words; empty: it does.
  static std::string obstacle(const Problem& problem);

  explicit CompletionLabels(const Problem& problem);

  struct Step {
    OpId op;
    DeviceId device;
  };
  struct Result {
    bool complete = false;
    double lower_bound = 0;   // no plan is below; the cutoff where complete without steps
    std::vector<Step> steps;  // the best plan below the cutoff, where there is one
  };
  // Ends without being complete when `stop` says so or more than `label_limit` labels are kept.
  Result search(double cutoff, std::size_t label_limit, const Stop& stop);

 private:
  using Words = std::vector<std::uint64_t>;
  struct HashWords {
    std::size_t operator()(const Words& words) const noexcept;
  };

  // How a label came to be.
  struct Origin {
    std::uint32_t parent;
    std::uint32_t op;
    std::uint32_t device;
  };

  // The labels of a down-set, one row of numbers each: cost, lanes, tensors, models.
  struct Ideal {
    std::vector<TensorId> live;  // produced, with a reader to come
    std::vector<ModelId> open;   // models with an op to come
    std::vector<OpId> ready;
    std::vector<std::pair<std::size_t, OpId>> reads;  // live tensor, reader that is not ready
    std::vector<double> left;                         // prices x open models: work to come
    std::vector<double> rows;
    std::vector<double> bounds;          // by label
    std::vector<std::uint32_t> origins;  // by label
    [[nodiscard]] std::size_t size() const { return origins.size(); }
  };
  using Layer = std::unordered_map<Words, Ideal, HashWords>;

  [[nodiscard]] std::size_t stride(const Ideal& ideal) const {
    return 1 + lane_count_ + ideal.live.size() * copies_ + ideal.open.size();
  }
  [[nodiscard]] std::size_t lane_at(DeviceId device) const { return 1 + lane_begin_[device]; }
  [[nodiscard]] std::size_t tensor_at(std::size_t live) const {
    return 1 + lane_count_ + live * copies_;
  }
  [[nodiscard]] std::size_t model_at(const Ideal& ideal, std::size_t open) const {
    return 1 + lane_count_ + ideal.live.size() * copies_ + open;
  }
  [[nodiscard]] double arrived(const double* row, std::size_t live, DeviceId device) const {
    return row[tensor_at(live) + (copies_ == 1 ? 0 : device.index())];
  }

  void describe(const Words& done, Ideal& ideal) const;
  // Of the op's model among those open.
  [[nodiscard]] std::size_t position_of(const Ideal& ideal, OpId op) const;
  [[nodiscard]] bool holds(const Words& done, OpId op) const {
    return (done[op.index() / 64] >> (op.index() % 64) & 1U) != 0;
  }
  // The row after `op` on `device`; infinite cost where an input cannot get there.
  void extend(const Ideal& from, const double* row, OpId op, DeviceId device, const Ideal& to,
              std::vector<double>& made) const;
  [[nodiscard]] double ready_at(const Ideal& ideal, const double* row, OpId op,
                                DeviceId device) const;
  void raise(const Ideal& ideal, std::vector<double>& row) const;
  double bound(const Ideal& ideal, std::vector<double>& row);
  [[nodiscard]] double set_complete(const Ideal& ideal, const double* row, std::size_t set) const;
  bool keep(Ideal& ideal, const std::vector<double>& row, double bound, const Origin& origin);
  void expand(const Words& done, const Ideal& ideal, Layer& next, double cutoff);
  [[nodiscard]] std::vector<Step> steps_to(std::uint32_t origin) const;

  const Problem& problem_;
  std::size_t words_;
  std::size_t copies_;  // times kept for a tensor: one, or one for each device
  bool may_raise_;      // no op takes no time
  std::size_t lane_count_ = 0;
  Table<DeviceId, std::size_t> lane_begin_;
  std::vector<double> tail_;  // op x device: from the op's start there to the end of its model
  std::vector<PricedWork> works_;
  std::vector<Origin> origins_;
  std::vector<double> path_;      // by open model, of the label at hand
  std::vector<double> complete_;  // by set of open models
  std::vector<double> total_;
  mutable std::vector<std::pair<double, double>> lanes_by_time_;
};

}  // namespace placewright
