#include "planners/learned/plugin/hsdag_network.h"

#include <algorithm>
#include <numeric>

#include <torch/utils.h>

#include "planners/learned/graph_parsing.h"

namespace placewright::learned {
namespace {

constexpr std::int64_t kEncoderLayers = 2;
constexpr std::int64_t kPoolingLayers = 1;
constexpr float kMergeThreshold = 0.5F;

using Edge = std::pair<std::int64_t, std::int64_t>;

}  // namespace

// The graph of one round: nodes are the groups of the round before.
struct HsdagNetworkImpl::Level {
  std::int64_t node_count = 0;
  std::vector<Edge> edges;  // undirected, distinct
  std::vector<std::uint8_t> allowed;
  torch::Tensor ends[2];
  Adjacency adjacency;

  Level(std::int64_t nodes, std::vector<Edge> between, std::vector<std::uint8_t> where)
      : node_count(nodes), edges(std::move(between)), allowed(std::move(where)) {
    for (Edge& edge : edges) {
      if (edge.first > edge.second) std::swap(edge.first, edge.second);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::erase_if(edges, [](const Edge& edge) { return edge.first == edge.second; });
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> second;
    for (const Edge& edge : edges) {
      first.push_back(edge.first);
      second.push_back(edge.second);
    }
    ends[0] = index_tensor(first);
    ends[1] = index_tensor(second);
    adjacency = Adjacency{torch::cat({ends[0], ends[1]}), torch::cat({ends[1], ends[0]}), nodes};
  }

  [[nodiscard]] Level next(const std::vector<std::int64_t>& group_of, std::int64_t groups) const {
    const std::size_t devices = allowed.size() / static_cast<std::size_t>(node_count);
    std::vector<std::uint8_t> common(static_cast<std::size_t>(groups) * devices, 1);
    for (std::size_t node = 0; node < group_of.size(); ++node) {
      const auto group = static_cast<std::size_t>(group_of[node]);
      for (std::size_t d = 0; d < devices; ++d) {
        common[group * devices + d] &= allowed[node * devices + d];
      }
    }
    std::vector<Edge> between;
    for (const auto& [a, b] : edges) {
      between.emplace_back(group_of[static_cast<std::size_t>(a)],
                           group_of[static_cast<std::size_t>(b)]);
    }
    return Level(groups, std::move(between), std::move(common));
  }
};

HsdagNetworkImpl::HsdagNetworkImpl(const LearnerOptions& options)
    : channels_(options.channels), parse_(options.parse), any_devices_(options.any_devices) {
  const std::int64_t c = options.channels;
  const double dropout = options.dropout;
  const auto features = static_cast<std::int64_t>(kNodeFeatures);
  input_ = register_module("input", Mlp(features, c, c, 2, dropout));
  encoder_ = register_module("encoder", GraphEncoder(options.encoder, c, kEncoderLayers, dropout));
  if (parse_) {
    pooling_ =
        register_module("pooling", GraphEncoder(options.encoder, c, kPoolingLayers, dropout));
    edge_ = register_module("edge", Mlp(c, 1, c, 2, dropout));
    const torch::NoGradGuard no_gradients;
    for (auto& parameter : edge_->named_parameters()) {
      // The bias of the last layer, which has one output.
      if (parameter.value().dim() == 1 && parameter.value().numel() == 1) {
        parameter.value().fill_(options.merge_bias);
      }
    }
    pre_ = register_module("pre", Mlp(c, c, c, 1, dropout));
    post_ = register_module("post", Mlp(c, c, c, 1, dropout));
  }
  if (any_devices_) {
    head_ = register_module("head", DeviceHead(c, c));
  } else {
    fixed_head_ = register_module("fixed_head", Mlp(c, options.device_count, c, 2, dropout));
  }
}

torch::Tensor HsdagNetworkImpl::edge_scores(const torch::Tensor& rows, const Level& level) {
  const torch::Tensor product =
      rows.index_select(0, level.ends[0]) * rows.index_select(0, level.ends[1]);
  return torch::sigmoid(edge_->forward(product).squeeze(-1));
}

torch::Tensor HsdagNetworkImpl::merged(const torch::Tensor& rows, const torch::Tensor& messages,
                                       const torch::Tensor& scores, const Level& level,
                                       const std::vector<std::int64_t>& group_of,
                                       std::int64_t group_count) {
  const torch::Tensor group = index_tensor(group_of);
  const torch::Tensor of_first = group.index_select(0, level.ends[0]);
  const torch::Tensor inside = (of_first == group.index_select(0, level.ends[1])).to(rows.dtype());
  const torch::Tensor links = sum_rows(inside, of_first, group_count);
  const torch::Tensor inside_score = sum_rows(scores * inside, of_first, group_count);
  // The mean score times the number of links is their sum.
  const torch::Tensor pooled =
      post_->forward(sum_rows(pre_->forward(messages), group, group_count)) *
      inside_score.unsqueeze(1);
  const torch::Tensor own = sum_rows(rows, group, group_count);
  return torch::where((links > 0).unsqueeze(1), pooled, own);
}

GroupScores HsdagNetworkImpl::forward(const GraphTensors& graph, const PlacementGraph& source,
                                      const torch::Tensor& state, const Parse* known) {
  std::vector<Edge> edges;
  for (const auto& [a, b] : source.edges) {
    edges.emplace_back(static_cast<std::int64_t>(a.index()), static_cast<std::int64_t>(b.index()));
  }
  Level level(static_cast<std::int64_t>(source.node_count()), std::move(edges), source.allowed);
  torch::Tensor rows = input_->forward(graph.features) + state;
  std::vector<std::int64_t> group_of(source.node_count());
  std::iota(group_of.begin(), group_of.end(), std::int64_t{0});
  GroupScores result;
  torch::Tensor encoded = encoder_->forward(rows, level.adjacency);
  while (parse_ && !level.edges.empty()) {
    const torch::Tensor scores = edge_scores(encoded, level);
    std::vector<std::int64_t> merge;
    if (known != nullptr) {
      if (result.parse.size() == known->size()) break;
      merge = (*known)[result.parse.size()];
    } else {
      const torch::Tensor values = scores.detach().to(torch::kFloat32).contiguous();
      merge =
          parse_graph(level.node_count, level.edges, {values.data_ptr<float>(), level.edges.size()},
                      kMergeThreshold, level.allowed)
              .group_of;
    }
    const std::int64_t groups = *std::max_element(merge.begin(), merge.end()) + 1;
    if (groups == level.node_count) break;
    rows = merged(rows, pooling_->forward(rows, level.adjacency), scores, level, merge, groups);
    for (std::int64_t& group : group_of) group = merge[static_cast<std::size_t>(group)];
    level = level.next(merge, groups);
    encoded = encoder_->forward(rows, level.adjacency);
    result.parse.push_back(std::move(merge));
  }

  result.group_of = index_tensor(group_of);
  result.embedding = encoded;
  const auto devices = static_cast<std::int64_t>(source.device_count);
  result.allowed = torch::tensor(level.allowed, torch::kUInt8)
                       .reshape({level.node_count, devices})
                       .to(torch::kBool);
  if (any_devices_) {
    const torch::Tensor size =
        sum_rows(torch::ones({result.group_of.size(0)}, graph.pairs.options()), result.group_of,
                 level.node_count);
    const torch::Tensor pairs = sum_rows(graph.pairs, result.group_of, level.node_count) /
                                size.reshape({level.node_count, 1, 1});
    result.scores = head_->forward(encoded, pairs);
  } else {
    result.scores = fixed_head_->forward(encoded);
  }
  return result;
}

}  // namespace placewright::learned
