// The network of Placeto: messages over the graph with the current placement, then scores for the
// node whose turn it is.

#pragma once

#include "planners/learned/plugin/layers.h"

namespace placewright::learned {

// Rows of ones over the node's ancestors, descendants and the rest, each divided by their number.
struct Relatives {
  torch::Tensor ancestors;
  torch::Tensor descendants;
  torch::Tensor others;

  explicit Relatives(const PlacementGraph& graph);
};

class MessageNetworkImpl : public torch::nn::Module {
 public:
  explicit MessageNetworkImpl(const LearnerOptions& options);

  // Scores (state x device) for the node whose turn it is in each state. `rows`: state x node,
  // `turns`: state.
  torch::Tensor forward(const GraphTensors& graph, const Relatives& relatives,
                        const torch::Tensor& rows, const torch::Tensor& turns);

 private:
  Mlp input_{nullptr};
  torch::nn::Linear from_parents_{nullptr};
  torch::nn::Linear from_children_{nullptr};
  DeviceHead head_{nullptr};
};
TORCH_MODULE(MessageNetwork);

}  // namespace placewright::learned
