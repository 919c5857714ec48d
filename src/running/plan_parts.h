// A plan as sub-models that any runtime can execute: one for each segment, and who gives what to
// whom.
//
// A model that came from an ONNX file is cut in that file: its nodes go where the op goes that
// makes their output, nodes that no longer exist as ops (folded, or merged into others) go to the
// first part that reads them, and constants go to every part that does. Parts then exchange tensors
// of the file, by their names there. Other models are written in the backend's own format, and
// their tensors are called after the op that makes them (backends/runtime.h, name_of_tensor).
//
// Parts are in an order in which they can run one after the other.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/runtime.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct PartPort {
  std::string tensor;
  TensorType type;
  std::optional<std::size_t> from =
      {};                            // an input: the part that makes it; nullopt: the model's input
  std::vector<std::size_t> to = {};  // an output: the parts that read it
  std::string model_output = {};     // an output: what the model calls it; empty: it has none
};

struct PlanPart {
  ModelId model;
  std::vector<DeviceId> devices;  // more than one: replicas that take samples in turn
  std::size_t ops = 0;
  std::string ending;    // of its file: ".onnx" or ".xml"
  SerialisedModel file;  // an ONNX model has no weights beside it
  std::vector<PartPort> inputs;
  std::vector<PartPort> outputs;
};

// Throws InputError and RuntimeError. The plan must be valid.
std::vector<PlanPart> plan_parts(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models);

// The ONNX file that the plan's one model came from, each node with a metadata entry `key` that
// says what `label_of` gives for its device; nodes that only make constants have none. Throws
// InputError.
struct AnnotatedOnnx {
  std::string bytes;
  bool has_files_beside;  // weights lie in files beside the model
};
AnnotatedOnnx annotated_onnx(const Problem& problem, const Plan& plan, const NeuralModel& model,
                             std::string_view key,
                             const std::function<std::string(DeviceId)>& label_of);

}  // namespace placewright
