#include "planners/learned/plugin/placeto_network.h"

namespace placewright::learned {
namespace {

constexpr std::int64_t kHops = 2;
constexpr std::int64_t kVisitFeatures = 2;  // is it this node's turn, has it had its turn

torch::Tensor passed(torch::nn::Linear& layer, const torch::Tensor& values,
                     const torch::Tensor& from, const torch::Tensor& to) {
  const torch::Tensor messages = torch::relu(layer->forward(values)).index_select(1, from);
  return torch::zeros_like(values).index_add(1, to, messages);
}

}  // namespace

Relatives::Relatives(const PlacementGraph& graph) {
  const auto nodes = static_cast<std::int64_t>(graph.node_count());
  torch::Tensor reach = torch::zeros({nodes, nodes});
  // Edges ascend, but where colocation closes a cycle; those are left out.
  for (auto edge = graph.edges.rbegin(); edge != graph.edges.rend(); ++edge) {
    const auto from = static_cast<std::int64_t>(edge->first.index());
    const auto to = static_cast<std::int64_t>(edge->second.index());
    if (to < from) continue;
    reach[from].copy_(torch::max(reach[from], reach[to]));
    reach[from][to] = 1;
  }
  const auto means = [](const torch::Tensor& rows) {
    return rows / rows.sum(1, true).clamp_min(1);
  };
  descendants = means(reach);
  ancestors = means(reach.t());
  others = means(1 - torch::max(reach, reach.t()) - torch::eye(nodes));
}

MessageNetworkImpl::MessageNetworkImpl(const LearnerOptions& options) {
  const std::int64_t c = options.channels;
  const auto inputs = static_cast<std::int64_t>(kNodeFeatures + kPairFeatures) + kVisitFeatures;
  input_ = register_module("input", Mlp(inputs, c, c, 2, options.dropout));
  from_parents_ = register_module("from_parents", torch::nn::Linear(c, c));
  from_children_ = register_module("from_children", torch::nn::Linear(c, c));
  head_ = register_module("head", DeviceHead(4 * c, c));
}

torch::Tensor MessageNetworkImpl::forward(const GraphTensors& graph, const Relatives& relatives,
                                          const torch::Tensor& rows, const torch::Tensor& turns) {
  const std::int64_t states = rows.size(0);
  const std::int64_t nodes = rows.size(1);
  const torch::Tensor index = rows.t().unsqueeze(2).expand({nodes, states, graph.pairs.size(2)});
  const torch::Tensor placed = graph.pairs.gather(1, index).transpose(0, 1);
  const torch::Tensor positions = torch::arange(nodes).unsqueeze(0);
  const torch::Tensor visits =
      torch::stack({positions == turns.unsqueeze(1), positions < turns.unsqueeze(1)}, 2)
          .to(graph.features.dtype());
  const torch::Tensor features =
      graph.features.unsqueeze(0).expand({states, nodes, graph.features.size(1)});
  torch::Tensor values = input_->forward(torch::cat({features, placed, visits}, 2));
  for (std::int64_t hop = 0; hop < kHops; ++hop) {
    const torch::Tensor down = passed(from_parents_, values, graph.edge_from, graph.edge_to);
    const torch::Tensor up = passed(from_children_, values, graph.edge_to, graph.edge_from);
    values = values + down + up;
  }
  const auto pooled = [&](const torch::Tensor& weights) {
    return torch::bmm(weights.index_select(0, turns).to(values.dtype()).unsqueeze(1), values)
        .squeeze(1);
  };
  const torch::Tensor own =
      values.gather(1, turns.reshape({states, 1, 1}).expand({states, 1, values.size(2)}))
          .squeeze(1);
  const torch::Tensor summary = torch::cat(
      {own, pooled(relatives.ancestors), pooled(relatives.descendants), pooled(relatives.others)},
      1);
  return head_->forward(summary, graph.pairs.index_select(0, turns));
}

}  // namespace placewright::learned
