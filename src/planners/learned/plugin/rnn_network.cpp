#include "planners/learned/plugin/rnn_network.h"

namespace placewright::learned {

SequenceNetworkImpl::SequenceNetworkImpl(const LearnerOptions& options)
    : channels_(options.channels) {
  const auto pair_features = static_cast<std::int64_t>(kPairFeatures);
  const auto features = static_cast<std::int64_t>(kNodeFeatures) + pair_features;
  input_ = register_module("input", Mlp(features, channels_, channels_, 2, options.dropout));
  encoder_ =
      register_module("encoder", torch::nn::LSTM(torch::nn::LSTMOptions(channels_, channels_)));
  previous_ = register_module("previous", torch::nn::Linear(pair_features, channels_));
  decoder_ =
      register_module("decoder", torch::nn::LSTM(torch::nn::LSTMOptions(2 * channels_, channels_)));
  head_ = register_module("head", DeviceHead(2 * channels_, channels_));
}

torch::Tensor SequenceNetworkImpl::encode(const GraphTensors& graph) {
  const torch::Tensor inputs = torch::cat({graph.features, graph.pairs.mean(1)}, 1);
  return std::get<0>(encoder_->forward(input_->forward(inputs).unsqueeze(1)));
}

torch::Tensor SequenceNetworkImpl::decode(const GraphTensors& graph, const torch::Tensor& encoded,
                                          std::int64_t first, const torch::Tensor& previous,
                                          std::optional<State>& state) {
  const std::int64_t steps = previous.size(0);
  const std::int64_t samples = previous.size(1);
  const torch::Tensor own = encoded.narrow(0, first, steps).expand({steps, samples, channels_});
  const torch::Tensor inputs = torch::cat({previous_->forward(previous), own}, 2);
  auto [outputs, next] = state ? decoder_->forward(inputs, *state) : decoder_->forward(inputs);
  state = next;
  const torch::Tensor memory = encoded.squeeze(1);
  const torch::Tensor attention =
      torch::softmax(outputs.matmul(memory.t()) / std::sqrt(static_cast<double>(channels_)), 2);
  const torch::Tensor context = attention.matmul(memory);
  const torch::Tensor pairs = graph.pairs.narrow(0, first, steps).unsqueeze(1);
  return head_->forward(torch::cat({outputs, context}, 2), pairs);
}

}  // namespace placewright::learned
