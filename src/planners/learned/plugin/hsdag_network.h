// The network of HSDAG: encode the graph, parse it into groups, place the groups.
//
// Encode: input MLP, then messages between neighbours. Parse, in rounds until nothing merges: an
// edge is scored sigmoid(MLP(h_u * h_v)), parse_graph follows the best edges, a group's embedding
// is post(sum of pre(h) over its members) times the mean score of the edges inside, times their
// number; a node that stays alone keeps its own. Place: scores for each group and device.
//
// Reference: S. Duan et al., NeurIPS 2024; Y. Song et al., "Graph parsing networks", ICLR 2024.

#pragma once

#include <optional>
#include <vector>

#include "planners/learned/plugin/layers.h"

namespace placewright::learned {

// How the nodes became groups, round by round.
using Parse = std::vector<std::vector<std::int64_t>>;

struct GroupScores {
  torch::Tensor scores;     // group x device
  torch::Tensor allowed;    // group x device
  torch::Tensor embedding;  // group x channel
  torch::Tensor group_of;   // node -> group
  Parse parse;
};

class HsdagNetworkImpl : public torch::nn::Module {
 public:
  explicit HsdagNetworkImpl(const LearnerOptions& options);

  // `state` (node x channel) is added to the input; `known`: groups as in an earlier pass.
  GroupScores forward(const GraphTensors& graph, const PlacementGraph& source,
                      const torch::Tensor& state, const Parse* known);

  [[nodiscard]] std::int64_t channels() const { return channels_; }

 private:
  struct Level;
  [[nodiscard]] torch::Tensor edge_scores(const torch::Tensor& rows, const Level& level);
  [[nodiscard]] torch::Tensor merged(const torch::Tensor& rows, const torch::Tensor& messages,
                                     const torch::Tensor& scores, const Level& level,
                                     const std::vector<std::int64_t>& group_of,
                                     std::int64_t group_count);

  std::int64_t channels_;
  bool parse_;
  bool any_devices_;
  Mlp input_{nullptr};
  GraphEncoder encoder_{nullptr};
  GraphEncoder pooling_{nullptr};
  Mlp edge_{nullptr};
  Mlp pre_{nullptr};
  Mlp post_{nullptr};
  DeviceHead head_{nullptr};
  Mlp fixed_head_{nullptr};
};
TORCH_MODULE(HsdagNetwork);

}  // namespace placewright::learned
