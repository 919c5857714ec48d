// The layers that the networks are made of. Nodes are rows; a graph is a list of pairs of rows.

#pragma once

#include <torch/nn.h>

#include "planners/learned/learner.h"

namespace placewright::learned {

// Both directions of every edge.
struct Adjacency {
  torch::Tensor from;
  torch::Tensor to;
  std::int64_t node_count = 0;
};

// The graph of an environment as tensors, in the precision of the network.
struct GraphTensors {
  torch::Tensor features;  // node x feature
  torch::Tensor pairs;     // node x device x feature
  torch::Tensor allowed;   // node x device, boolean
  torch::Tensor edge_from;
  torch::Tensor edge_to;

  explicit GraphTensors(const PlacementGraph& graph);
};

torch::Tensor index_tensor(const std::vector<std::int64_t>& values);

// The sum of the rows of `values` that have the same entry in `group`.
torch::Tensor sum_rows(const torch::Tensor& values, const torch::Tensor& group, std::int64_t count);

// Linear layers with layer norm, ReLU and dropout between them.
class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl(std::int64_t inputs, std::int64_t outputs, std::int64_t channels, std::int64_t layers,
          double dropout);
  torch::Tensor forward(torch::Tensor rows);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(Mlp);

// One round of messages over the undirected graph.
//
//   gcn  rows of D^-1/2 (A + I) D^-1/2 X W                (Kipf and Welling, 2017)
//   gin  MLP(x + sum of the neighbours)                   (Xu et al., 2019)
//   gat  neighbours and itself, weighted by softmax of a learned score (Velickovic et al., 2018)
//   none nothing: each row as it is
class GraphLayerImpl : public torch::nn::Module {
 public:
  GraphLayerImpl(Encoder encoder, std::int64_t channels);
  torch::Tensor forward(const torch::Tensor& rows, const Adjacency& graph);

 private:
  Encoder encoder_;
  torch::nn::Linear first_{nullptr};
  torch::nn::Linear second_{nullptr};
  torch::Tensor score_from_;
  torch::Tensor score_to_;
};
TORCH_MODULE(GraphLayer);

// Several rounds, a residual connection and layer norm.
class GraphEncoderImpl : public torch::nn::Module {
 public:
  GraphEncoderImpl(Encoder encoder, std::int64_t channels, std::int64_t layers, double dropout);
  torch::Tensor forward(const torch::Tensor& rows, const Adjacency& graph);

 private:
  Encoder encoder_;
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Dropout dropout_{nullptr};
};
TORCH_MODULE(GraphEncoder);

// Scores (rows x devices) from an embedding of each row and features of each row and device: the
// same weights serve every device, so their number is free.
class DeviceHeadImpl : public torch::nn::Module {
 public:
  DeviceHeadImpl(std::int64_t inputs, std::int64_t channels);
  torch::Tensor forward(const torch::Tensor& rows, const torch::Tensor& pairs);

 private:
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear row_{nullptr};
  torch::nn::Linear pair_{nullptr};
  torch::nn::Linear score_{nullptr};
  torch::nn::Linear direct_{nullptr};
};
TORCH_MODULE(DeviceHead);

// Probabilities over allowed devices in the last dimension; `exploration` of it is spread evenly.
torch::Tensor device_probabilities(const torch::Tensor& scores, const torch::Tensor& allowed,
                                   double exploration);

// The entropy of each row, as a share of the largest that its allowed devices permit, in the mean
// over rows that have a choice.
torch::Tensor mean_entropy(const torch::Tensor& probabilities, const torch::Tensor& allowed);

}  // namespace placewright::learned
