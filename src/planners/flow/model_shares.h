// Several whole models on devices that may exclude each other, as sets of cores do: which device
// each model gets, and who goes first.
//
//   minimise  sum over models of weight x end,
//   where a model holds its device, and with it every device that shares a resource, from its start
//   to its end
//
// A plan is an order of the models and a kind of device for each. Models are taken in that order;
// each starts on the device of its kind that is free first. Devices of one kind differ in name
// only, so the search does not multiply with them. It starts from the models by weight over time,
// each on the kind that is fastest for it (shortest first) and with every single kind for all of
// them, and improves the best start: another kind for one model, or another place in the order,
// until neither helps or `evaluations` are spent. Wide sets win where few models wait and narrow
// ones where many do, since a model is served best by one core and soonest by many.
//
// A heuristic: no bound, and models are not cut. O(models x devices x excluded) for an evaluation.

#pragma once

#include <cstddef>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// A model that has not begun.
struct WaitingModel {
  ModelId model;
  double ready = 0;  // no start before
};

struct ModelStart {
  ModelId model;
  DeviceId device;
  double start = 0;
  double end = 0;
};

class ModelShares {
 public:
  explicit ModelShares(const Problem& problem);

  // How long the device takes for all ops of the model; infinite if it may not run one of them.
  [[nodiscard]] double time(ModelId model, DeviceId device) const {
    return time_[model.index() * problem_.device_count() + device.index()];
  }

  // The device that takes least time for the model; the first of several.
  [[nodiscard]] DeviceId fastest(ModelId model) const;

  // The starts in the order that was found; `busy` is until when each device works already. A model
  // that no device can run whole is left out. They are those of shortest first unless the sum of
  // completions is less by `least_gain`, relatively.
  [[nodiscard]] std::vector<ModelStart> best(const std::vector<WaitingModel>& waiting,
                                             const Table<DeviceId, double>& busy,
                                             std::size_t evaluations, double least_gain = 0) const;

 private:
  struct Choice {
    std::size_t waiting;  // its place in the list
    KindId kind;
  };
  using Choices = std::vector<Choice>;
  class Search;

  [[nodiscard]] double time_on_kind(ModelId model, KindId kind) const;

  const Problem& problem_;
  std::vector<double> time_;  // by model and device
  Table<DeviceId, std::vector<DeviceId>> excluded_;
  Table<KindId, std::vector<DeviceId>> of_kind_;
};

}  // namespace placewright
