// How a model is served: where it is cut, and what it and its segments take on the cores that
// serve.
//
// The whole model is measured first. It is cut where the quantum (stated_models.h) asks for it: at
// borders of fused groups that are about equally far apart, each the one near there that the fewest
// tensors cross. The cut model and the whole one then run in turns. If the cuts cost more than
// kCutShare of the time, there are fewer of them.
//
// Measurements are kept under the digest of what they depend on, so that a server that starts again
// measures nothing.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"
#include "serving/served_model.h"

namespace placewright {

struct ModelCuts {
  double whole = 0;                    // milliseconds
  std::vector<OpGroup> segments = {};  // ops; empty: uncut
  std::vector<double> times = {};      // by segment, milliseconds
  // What ServedModel has of the same names (measured_forms.h).
  std::map<std::size_t, double> batches = {};
  double on_half = 0;
};

// A model for each of several batch sizes.
using BatchedModels = std::map<std::size_t, std::shared_ptr<const NeuralModel>>;

// Borders of groups into `count` segments at most. `op_times` by op.
std::vector<OpGroup> narrow_segments(const ModelGraph& graph, const std::vector<OpGroup>& ordered,
                                     const std::vector<double>& op_times, std::size_t count);

// Of one inference, uncut.
double measure_whole(const NeuralModel& model, const Target& target, const MeasureOptions& options);

ModelCuts measure_model_cuts(const NeuralModel& model, const Target& target, double quantum,
                             const MeasureOptions& options);

// Measurements that a server made before; without a folder there are none.
class KeptCuts {
 public:
  explicit KeptCuts(std::string folder) : folder_(std::move(folder)) {}

  // Nullopt: there is none, or it cannot be read. `key` says what the measurement depends on.
  [[nodiscard]] std::optional<ModelCuts> find(const std::string& key) const;
  // A folder that cannot be written to is no error: the next start measures again.
  void keep(const std::string& key, const ModelCuts& cuts) const;

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;
  std::string folder_;
};

}  // namespace placewright
