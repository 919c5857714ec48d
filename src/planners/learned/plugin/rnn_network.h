// The network of RNN: an LSTM reads the nodes, another gives each a device, with attention to what
// was read.

#pragma once

#include <optional>
#include <tuple>

#include "planners/learned/plugin/layers.h"

namespace placewright::learned {

class SequenceNetworkImpl : public torch::nn::Module {
 public:
  explicit SequenceNetworkImpl(const LearnerOptions& options);

  // node x 1 x channel
  torch::Tensor encode(const GraphTensors& graph);

  using State = std::tuple<torch::Tensor, torch::Tensor>;

  // Scores (step x sample x device) of the nodes `first` .. `first + steps - 1`, given the features
  // of the devices chosen for the nodes before each (step x sample x feature).
  torch::Tensor decode(const GraphTensors& graph, const torch::Tensor& encoded, std::int64_t first,
                       const torch::Tensor& previous, std::optional<State>& state);

 private:
  std::int64_t channels_;
  Mlp input_{nullptr};
  torch::nn::LSTM encoder_{nullptr};
  torch::nn::Linear previous_{nullptr};
  torch::nn::LSTM decoder_{nullptr};
  DeviceHead head_{nullptr};
};
TORCH_MODULE(SequenceNetwork);

}  // namespace placewright::learned
