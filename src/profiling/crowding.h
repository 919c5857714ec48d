// What other work does to a model that is measured: devices share caches, memory and clock rates,
// and models that take turns on a device find the weights of the others in its caches.

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/measurement.h"

namespace placewright {

// As many targets without a core in common as fit beside the first one, which is in front: those of
// its size before others.
std::vector<Target> side_by_side(const std::vector<Target>& targets, std::size_t first);

// A whole model compiled for a device, with inputs.
struct CompiledWhole {
  std::unique_ptr<CompiledPart> part;
  Buffers inputs;
  std::unique_ptr<Request> request;  // gone before the part
};

// Devices that run whole models again and again while another one is measured. The models are dealt
// out to them like cards, so that all of them run somewhere and each device has at least one: more
// copies of the weights than that would not fit where there are many cores.
class BusyDevices {
 public:
  BusyDevices() = default;  // none
  // The models must outlive it.
  BusyDevices(std::span<const NeuralModel* const> models, std::vector<Target> targets,
              const MeasureOptions& options);

  // Calls `work` in a thread of the target, which shares no core with the busy devices, and keeps
  // them busy until it returns.
  void beside(const Target& target, const std::function<void()>& work,
              const MeasureOptions& options);

  [[nodiscard]] std::size_t count() const { return targets_.size(); }

 private:
  std::vector<Target> targets_;
  std::vector<std::vector<CompiledWhole>> loads_;  // by target
};

// One inference of a model.
struct TurnTimes {
  Measured first;  // after another model, which left its own weights in the caches
  Measured again;  // right after that

  [[nodiscard]] double factor() const;
  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// The models take turns on the target, twice each, with the other devices busy; by model.
std::vector<TurnTimes> measure_turns(std::span<const NeuralModel* const> models,
                                     const Target& target, BusyDevices& busy,
                                     const MeasureOptions& options);

}  // namespace placewright
