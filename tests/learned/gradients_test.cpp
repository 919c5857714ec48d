// The gradients of every layer against finite differences, in double precision.

#include <functional>

#include <gtest/gtest.h>

#include "planners/learned/plugin/hsdag_network.h"
#include "planners/learned/plugin/layers.h"
#include "planners/learned/plugin/placeto_network.h"
#include "planners/learned/plugin/rnn_network.h"
#include "planners/learned/plugin/torch_learner.h"

namespace placewright::learned {
namespace {

constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-5;

torch::Tensor random_rows(std::vector<std::int64_t> shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn(shape, torch::kFloat64);
}

// Compares d(sum of weights x output) / d(parameter) for every parameter, up to some entries of
// each.
void expect_right_gradients(torch::nn::Module& module,
                            const std::function<torch::Tensor()>& output) {
  module.to(torch::kFloat64);
  torch::manual_seed(99);
  const torch::Tensor weights = torch::randn_like(output().detach());
  const auto loss = [&] { return (output() * weights).sum(); };
  module.zero_grad();
  loss().backward();
  const torch::NoGradGuard no_gradients;
  for (auto& parameter : module.named_parameters()) {
    torch::Tensor values = parameter.value().view({-1});
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    const torch::Tensor gradient = parameter.value().grad().view({-1});
    const std::int64_t stride = std::max<std::int64_t>(1, values.numel() / 12);
    for (std::int64_t i = 0; i < values.numel(); i += stride) {
      const double before = values[i].item<double>();
      values[i] = before + kStep;
      const double above = loss().item<double>();
      values[i] = before - kStep;
      const double below = loss().item<double>();
      values[i] = before;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[i].item<double>(), expected, kTolerance * (1 + std::abs(expected)))
          << parameter.key() << "[" << i << "]";
    }
  }
}

// 0 -> 1 -> 3, 0 -> 2 -> 3, 3 -> 4
Adjacency diamond() {
  const torch::Tensor from = index_tensor({0, 1, 0, 2, 3});
  const torch::Tensor to = index_tensor({1, 3, 2, 3, 4});
  return Adjacency{torch::cat({from, to}), torch::cat({to, from}), 5};
}

TEST(Gradients, OfTheMlp) {
  torch::manual_seed(1);
  Mlp layer(5, 3, 8, 2, 0.0);
  const torch::Tensor rows = random_rows({6, 5}, 2);
  expect_right_gradients(*layer, [&] { return layer->forward(rows); });
}

class GradientsOfEncoder : public ::testing::TestWithParam<Encoder> {};

TEST_P(GradientsOfEncoder, AreRight) {
  torch::manual_seed(1);
  GraphLayer layer(GetParam(), 6);
  const torch::Tensor rows = random_rows({5, 6}, 2);
  expect_right_gradients(*layer, [&] { return layer->forward(rows, diamond()); });
  GraphEncoder encoder(GetParam(), 6, 2, 0.0);
  expect_right_gradients(*encoder, [&] { return encoder->forward(rows, diamond()); });
}

INSTANTIATE_TEST_SUITE_P(Encoders, GradientsOfEncoder,
                         ::testing::Values(Encoder::gcn, Encoder::gin, Encoder::gat));

TEST(Gradients, OfTheDeviceHeadAndTheProbabilities) {
  torch::manual_seed(1);
  DeviceHead head(6, 8);
  const torch::Tensor rows = random_rows({5, 6}, 2);
  const torch::Tensor pairs = random_rows({5, 3, static_cast<std::int64_t>(kPairFeatures)}, 3);
  torch::Tensor allowed = torch::ones({5, 3}, torch::kBool);
  allowed[1][2] = false;
  const auto probabilities = [&] {
    return device_probabilities(head->forward(rows, pairs), allowed, 0.1);
  };
  expect_right_gradients(*head, probabilities);
  expect_right_gradients(*head, [&] { return mean_entropy(probabilities(), allowed); });
}

// The diamond as the networks see it, with random features.
struct DiamondGraph {
  PlacementGraph source = made();
  GraphTensors tensors{source};

  DiamondGraph() {
    tensors.features = random_rows({5, static_cast<std::int64_t>(kNodeFeatures)}, 4);
    tensors.pairs = random_rows({5, 2, static_cast<std::int64_t>(kPairFeatures)}, 5);
  }

  static PlacementGraph made() {
    PlacementGraph graph;
    graph.device_count = 2;
    std::vector<std::pair<NodeId, OpId>> members;
    for (std::size_t i = 0; i < 5; ++i) members.emplace_back(NodeId{i}, OpId{i});
    graph.ops = Rows<NodeId, OpId>::from_pairs(5, members);
    for (const auto& [a, b] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {1, 3}, {0, 2}, {2, 3}, {3, 4}}) {
      graph.edges.emplace_back(NodeId{a}, NodeId{b});
    }
    graph.allowed.assign(10, 1);
    graph.features.assign(5 * kNodeFeatures, 0);
    graph.pair_features.assign(10 * kPairFeatures, 0);
    return graph;
  }
};

TEST(Gradients, OfTheWholeNetworkWithItsParser) {
  const DiamondGraph graph;
  torch::manual_seed(1);
  HsdagNetwork network(LearnerOptions{.channels = 6});
  network->to(torch::kFloat64);
  const torch::Tensor state = torch::zeros({5, 6}, torch::kFloat64);
  // Two rounds that merge, whatever the scores are.
  const Parse parse = {{0, 0, 1, 2, 2}, {0, 0, 1}};
  const auto pass = [&] { return network->forward(graph.tensors, graph.source, state, &parse); };
  EXPECT_EQ(pass().scores.size(0), 2);
  expect_right_gradients(*network, [&] { return pass().scores; });
}

TEST(Gradients, OfTheNetworkOfPlaceto) {
  const DiamondGraph graph;
  torch::manual_seed(1);
  MessageNetwork network(LearnerOptions{.channels = 6});
  network->to(torch::kFloat64);
  const Relatives relatives(graph.source);
  // Three states of the placement, each with another node's turn.
  const torch::Tensor rows = torch::tensor({{0, 1, 0, 1, 1}, {1, 1, 0, 0, 1}, {0, 0, 0, 1, 0}});
  const torch::Tensor turns = index_tensor({0, 2, 4});
  expect_right_gradients(*network,
                         [&] { return network->forward(graph.tensors, relatives, rows, turns); });
}

TEST(Gradients, OfTheNetworkOfRnn) {
  const DiamondGraph graph;
  torch::manual_seed(1);
  SequenceNetwork network(LearnerOptions{.channels = 6});
  network->to(torch::kFloat64);
  const torch::Tensor previous = random_rows({5, 3, static_cast<std::int64_t>(kPairFeatures)}, 6);
  expect_right_gradients(*network, [&] {
    std::optional<SequenceNetworkImpl::State> state;
    return network->decode(graph.tensors, network->encode(graph.tensors), 0, previous, state);
  });
}

TEST(Probabilities, AreZeroWhereNotAllowedAndSumToOne) {
  torch::Tensor allowed = torch::ones({4, 3}, torch::kBool);
  allowed[0][0] = false;
  allowed[2][1] = false;
  allowed[2][2] = false;
  const torch::Tensor likely = device_probabilities(random_rows({4, 3}, 8), allowed, 0.3);
  EXPECT_TRUE(torch::allclose(likely.sum(1), torch::ones({4}, torch::kFloat64)));
  EXPECT_EQ(likely[0][0].item<double>(), 0);
  EXPECT_NEAR(likely[2][0].item<double>(), 1, 1e-12);
}

TEST(Returns, AreDiscountedFromTheEnd) {
  const torch::Tensor rewards = torch::tensor({{1.0F, 2.0F, 4.0F}});
  EXPECT_TRUE(torch::allclose(discounted(rewards, 0.5), torch::tensor({{3.0F, 4.0F, 4.0F}})));
}

}  // namespace
}  // namespace placewright::learned
