#include "planners/learned/plugin/layers.h"

namespace placewright::learned {
namespace {

constexpr double kTiny = 1e-12;

torch::Tensor float_tensor(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  return torch::tensor(values, torch::kFloat32).reshape(shape);
}

}  // namespace

torch::Tensor index_tensor(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

GraphTensors::GraphTensors(const PlacementGraph& graph) {
  const auto nodes = static_cast<std::int64_t>(graph.node_count());
  const auto devices = static_cast<std::int64_t>(graph.device_count);
  features = float_tensor(graph.features, {nodes, static_cast<std::int64_t>(kNodeFeatures)});
  pairs =
      float_tensor(graph.pair_features, {nodes, devices, static_cast<std::int64_t>(kPairFeatures)});
  allowed = torch::tensor(graph.allowed, torch::kUInt8).reshape({nodes, devices}).to(torch::kBool);
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> to;
  for (const auto& [a, b] : graph.edges) {
    from.push_back(static_cast<std::int64_t>(a.index()));
    to.push_back(static_cast<std::int64_t>(b.index()));
  }
  edge_from = index_tensor(from);
  edge_to = index_tensor(to);
}

torch::Tensor sum_rows(const torch::Tensor& values, const torch::Tensor& group,
                       std::int64_t count) {
  std::vector<std::int64_t> shape(values.sizes().begin(), values.sizes().end());
  shape[0] = count;
  return torch::zeros(shape, values.options()).index_add(0, group, values);
}

MlpImpl::MlpImpl(std::int64_t inputs, std::int64_t outputs, std::int64_t channels,
                 std::int64_t layers, double dropout) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool last = i + 1 == layers;
    layers_->push_back(torch::nn::Linear(i == 0 ? inputs : channels, last ? outputs : channels));
    if (last) break;
    layers_->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels})));
    layers_->push_back(torch::nn::ReLU());
    layers_->push_back(torch::nn::Dropout(dropout));
  }
  register_module("layers", layers_);
}

torch::Tensor MlpImpl::forward(torch::Tensor rows) {
  return layers_->forward(rows);
}

GraphLayerImpl::GraphLayerImpl(Encoder encoder, std::int64_t channels) : encoder_(encoder) {
  if (encoder == Encoder::none) return;
  first_ = register_module("first", torch::nn::Linear(channels, channels));
  if (encoder == Encoder::gin) {
    second_ = register_module("second", torch::nn::Linear(channels, channels));
  }
  if (encoder == Encoder::gat) {
    const double bound = 1 / std::sqrt(static_cast<double>(channels));
    score_from_ =
        register_parameter("score_from", torch::empty({channels}).uniform_(-bound, bound));
    score_to_ = register_parameter("score_to", torch::empty({channels}).uniform_(-bound, bound));
  }
}

torch::Tensor GraphLayerImpl::forward(const torch::Tensor& rows, const Adjacency& graph) {
  const std::int64_t nodes = graph.node_count;
  const auto from_neighbours = [&](const torch::Tensor& values, const torch::Tensor& weights) {
    return sum_rows(values.index_select(0, graph.from) * weights.unsqueeze(1), graph.to, nodes);
  };
  if (encoder_ == Encoder::gin) {
    const torch::Tensor ones = torch::ones({graph.from.size(0)}, rows.options());
    return second_->forward(torch::relu(first_->forward(rows + from_neighbours(rows, ones))));
  }
  const torch::Tensor values = first_->forward(rows);
  if (encoder_ == Encoder::gcn) {
    const torch::Tensor degree =
        sum_rows(torch::ones({graph.to.size(0)}, rows.options()), graph.to, nodes) + 1;
    const torch::Tensor root = degree.rsqrt();
    const torch::Tensor weights = root.index_select(0, graph.from) * root.index_select(0, graph.to);
    return from_neighbours(values, weights) + values / degree.unsqueeze(1);
  }
  // gat. The largest score of all is taken off before the exponential; it cancels.
  const torch::Tensor from = values.matmul(score_from_);
  const torch::Tensor to = values.matmul(score_to_);
  const torch::Tensor scores =
      torch::leaky_relu(from.index_select(0, graph.from) + to.index_select(0, graph.to), 0.2);
  const torch::Tensor own = torch::leaky_relu(from + to, 0.2);
  const torch::Tensor top = torch::cat({scores, own}).max().detach();
  const torch::Tensor weights = (scores - top).exp();
  const torch::Tensor own_weights = (own - top).exp();
  const torch::Tensor total = sum_rows(weights, graph.to, nodes) + own_weights + kTiny;
  return (from_neighbours(values, weights) + values * own_weights.unsqueeze(1)) /
         total.unsqueeze(1);
}

GraphEncoderImpl::GraphEncoderImpl(Encoder encoder, std::int64_t channels, std::int64_t layers,
                                   double dropout)
    : encoder_(encoder) {
  for (std::int64_t i = 0; i < layers; ++i) layers_->push_back(GraphLayer(encoder, channels));
  register_module("layers", layers_);
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels})));
  dropout_ = register_module("dropout", torch::nn::Dropout(dropout));
}

torch::Tensor GraphEncoderImpl::forward(const torch::Tensor& rows, const Adjacency& graph) {
  if (encoder_ == Encoder::none) return norm_->forward(rows);
  torch::Tensor values = rows;
  for (const auto& layer : *layers_) {
    values = layer->as<GraphLayerImpl>()->forward(values, graph);
    values = dropout_->forward(torch::relu(values));
  }
  return norm_->forward(rows + values);
}

DeviceHeadImpl::DeviceHeadImpl(std::int64_t inputs, std::int64_t channels) {
  const auto pair_features = static_cast<std::int64_t>(kPairFeatures);
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({inputs})));
  row_ = register_module("row", torch::nn::Linear(inputs, channels));
  pair_ = register_module("pair", torch::nn::Linear(pair_features, channels));
  score_ = register_module("score", torch::nn::Linear(channels, 1));
  direct_ = register_module("direct", torch::nn::Linear(pair_features, 1));
}

torch::Tensor DeviceHeadImpl::forward(const torch::Tensor& rows, const torch::Tensor& pairs) {
  const torch::Tensor hidden =
      torch::relu(row_->forward(norm_->forward(rows)).unsqueeze(-2) + pair_->forward(pairs));
  return (score_->forward(hidden) + direct_->forward(pairs)).squeeze(-1);
}

torch::Tensor device_probabilities(const torch::Tensor& scores, const torch::Tensor& allowed,
                                   double exploration) {
  const torch::Tensor masked = scores.masked_fill(~allowed, -1e9);
  const torch::Tensor even =
      allowed.to(scores.dtype()) / allowed.sum(-1, true).clamp_min(1).to(scores.dtype());
  return (1 - exploration) * torch::softmax(masked, -1) + exploration * even;
}

torch::Tensor mean_entropy(const torch::Tensor& probabilities, const torch::Tensor& allowed) {
  const torch::Tensor entropy = -(probabilities * probabilities.clamp_min(kTiny).log()).sum(-1);
  const torch::Tensor choices = allowed.sum(-1);
  const torch::Tensor has_choice = (choices > 1).to(probabilities.dtype());
  const torch::Tensor largest = choices.clamp_min(2).to(probabilities.dtype()).log();
  return (entropy / largest * has_choice).sum() / has_choice.sum().clamp_min(1);
}

}  // namespace placewright::learned
