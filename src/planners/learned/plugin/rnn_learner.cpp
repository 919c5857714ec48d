// RNN (Mirhoseini et al., "Device placement optimization with reinforcement learning", ICML 2017):
// a sequence-to-sequence LSTM with attention. It reads the nodes in topological order and then
// gives each a device, one after the other, knowing the one before. REINFORCE.
//
// Samples are drawn side by side, one step of the decoder for each node; learning then reads the
// whole sequence in one pass, since the decoder's inputs are known by then. O(nodes^2) memory for
// the attention of each sample.

#include "planners/learned/plugin/rnn_network.h"
#include "planners/learned/plugin/torch_learner.h"

namespace placewright::learned {
namespace {

class RnnLearner final : public TorchLearner {
 public:
  explicit RnnLearner(const LearnerOptions& options) : TorchLearner(options), network_(options) {
    own(network_.ptr());
  }

  Episode play(Environment& environment, std::uint64_t number) override {
    network_->train();
    const GraphTensors graph(environment.graph());
    torch::Tensor rows = sample(environment, graph, number);
    if (!rows.defined()) return Episode{.learned = false};
    std::vector<double> values = evaluate(environment, rows);
    if (environment.should_stop()) return Episode{.learned = false};
    const std::int64_t learned_from = rows.size(0) - wandering(rows.size(0));
    rows = rows.narrow(0, 0, learned_from);
    values.resize(static_cast<std::size_t>(learned_from));
    const torch::Tensor advantage =
        advantages(rewards(values, environment.scale()).unsqueeze(1)).squeeze(1);
    return learn(graph, rows, advantage, values);
  }

  Episode propose(Environment& environment, std::uint64_t number) override {
    const torch::NoGradGuard no_gradients;
    network_->eval();
    const GraphTensors graph(environment.graph());
    torch::Tensor rows = sample(environment, graph, number);
    Episode episode;
    if (!rows.defined()) return episode;
    const std::vector<double> values = evaluate(environment, rows);
    for (const double value : values) {
      episode.mean_value += value / static_cast<double>(values.size());
    }
    return episode;
  }

 private:
  static std::vector<double> evaluate(Environment& environment, torch::Tensor& rows) {
    return environment.evaluate(
        {rows.data_ptr<std::int32_t>(), static_cast<std::size_t>(rows.numel())});
  }

  [[nodiscard]] double exploration(const GraphTensors& graph) const {
    if (!network_->is_training()) return 0;
    return std::min(0.5, options().exploration / static_cast<double>(graph.features.size(0)));
  }

  // The features of the devices that `actions` (sample) chose for a node (device x feature).
  static torch::Tensor chosen(const torch::Tensor& pairs, const torch::Tensor& actions) {
    return pairs.index_select(0, actions);
  }

  // sample x node; without learning the first sample takes the most likely device each time. Not
  // defined where the time is over before the last node.
  torch::Tensor sample(Environment& environment, const GraphTensors& graph, std::uint64_t number) {
    const torch::NoGradGuard no_gradients;
    at::Generator generator = generator_for(number);
    const std::int64_t samples = options().samples;
    const torch::Tensor encoded = network_->encode(graph);
    std::optional<SequenceNetworkImpl::State> state;
    torch::Tensor previous = torch::zeros({1, samples, static_cast<std::int64_t>(kPairFeatures)});
    std::vector<torch::Tensor> columns;
    for (std::int64_t node = 0; node < graph.features.size(0); ++node) {
      if (environment.should_stop()) return {};
      const torch::Tensor scores =
          network_->decode(graph, encoded, node, previous, state).squeeze(0);
      const torch::Tensor likely =
          device_probabilities(scores, graph.allowed[node], exploration(graph));
      torch::Tensor actions = torch::multinomial(likely, 1, true, generator).squeeze(1);
      if (!network_->is_training()) actions[0].copy_(likely[0].argmax());
      columns.push_back(actions);
      previous = chosen(graph.pairs[node], actions).unsqueeze(0);
    }
    torch::Tensor actions = torch::stack(columns, 1).contiguous();
    wander(actions, graph.allowed, generator);
    return actions.to(torch::kInt32).contiguous();
  }

  Episode learn(const GraphTensors& graph, const torch::Tensor& rows,
                const torch::Tensor& advantage, const std::vector<double>& values) {
    const torch::Tensor known = (rows >= 0).to(torch::kFloat32).t();
    const torch::Tensor actions = rows.clamp_min(0).to(torch::kInt64).t();
    const std::int64_t nodes = actions.size(0);
    const torch::Tensor index =
        actions.unsqueeze(2).unsqueeze(3).expand({nodes, rows.size(0), 1, graph.pairs.size(2)});
    const torch::Tensor taken =
        graph.pairs.unsqueeze(1).expand({nodes, rows.size(0), -1, -1}).gather(2, index).squeeze(2);
    const torch::Tensor previous =
        torch::cat({torch::zeros_like(taken.narrow(0, 0, 1)), taken.narrow(0, 0, nodes - 1)});
    std::optional<SequenceNetworkImpl::State> state;
    const torch::Tensor scores =
        network_->decode(graph, network_->encode(graph), 0, previous, state);
    const torch::Tensor allowed = graph.allowed.unsqueeze(1).expand_as(scores);
    const torch::Tensor likely = device_probabilities(scores, allowed, exploration(graph));
    const torch::Tensor logarithm =
        likely.gather(2, actions.unsqueeze(2)).squeeze(2).clamp_min(1e-9).log();
    const torch::Tensor entropy = mean_entropy(likely, allowed);
    improve(-(logarithm * known * advantage.unsqueeze(0)).sum() / rows.size(0) -
            options().entropy * static_cast<double>(nodes) * entropy);
    Episode episode;
    episode.entropy = entropy.item<double>();
    for (const double value : values) {
      episode.mean_value += value / static_cast<double>(values.size());
    }
    return episode;
  }

  SequenceNetwork network_;
};

}  // namespace

std::unique_ptr<Learner> make_rnn(const LearnerOptions& options) {
  return std::make_unique<RnnLearner>(options);
}

}  // namespace placewright::learned
