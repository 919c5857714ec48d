// Placeto (Addanki et al., "Learning generalizable device placement algorithms for distributed
// machine learning", NeurIPS 2019): improves a placement node by node.
//
// An episode visits every node once, in topological order. At each step messages pass from parents
// to children and back over the graph with the current placement, the embeddings of the node's
// ancestors, of its descendants and of the rest are pooled, and a policy gives the node a device.
// The reward of a step is by how much the value falls. REINFORCE with the mean of the episodes that
// run side by side as the baseline of each step.
//
// Episodes begin at the best placement known, but for some that begin at a random one. Learning
// looks at all steps of all episodes again: O(samples x nodes x (nodes + edges)) time and memory.

#include "planners/learned/plugin/placeto_network.h"
#include "planners/learned/plugin/torch_learner.h"

namespace placewright::learned {
namespace {

// States that are learned from at once, so that memory and the time between two looks at the clock
// stay bounded.
constexpr std::int64_t kCellsAtOnce = 1 << 19;

// What was seen and done in one visit of every node; columns are steps.
struct Visit {
  std::vector<torch::Tensor> rows;     // before each step: sample x node
  std::vector<torch::Tensor> actions;  // sample
  std::vector<torch::Tensor> falls;    // of the value, sample
  double mean_value = 0;
};

class PlacetoLearner final : public TorchLearner {
 public:
  explicit PlacetoLearner(const LearnerOptions& options)
      : TorchLearner(options), network_(options) {
    own(network_.ptr());
  }

  Episode play(Environment& environment, std::uint64_t number) override {
    network_->train();
    const GraphTensors graph(environment.graph());
    const Relatives relatives(environment.graph());
    const Visit visit = visit_all(environment, graph, relatives, number);
    const torch::Tensor returns = discounted(torch::stack(visit.falls, 1), options().discount);
    return learn(environment, graph, relatives, visit, advantages(returns));
  }

  Episode propose(Environment& environment, std::uint64_t number) override {
    const torch::NoGradGuard no_gradients;
    network_->eval();
    const GraphTensors graph(environment.graph());
    const Visit visit = visit_all(environment, graph, Relatives(environment.graph()), number);
    Episode episode;
    episode.mean_value = visit.mean_value;
    return episode;
  }

 private:
  [[nodiscard]] double exploration(const GraphTensors& graph) const {
    if (!network_->is_training()) return 0;
    return std::min(0.5, options().exploration / static_cast<double>(graph.features.size(0)));
  }

  // The best placement known; a node that it splits begins on the first device that it may use.
  static torch::Tensor first_rows(Environment& environment, const GraphTensors& graph,
                                  std::int64_t samples) {
    const auto best = environment.best();
    const torch::Tensor row =
        torch::tensor(std::vector<std::int32_t>(best.begin(), best.end())).to(torch::kInt64);
    const torch::Tensor fallback = graph.allowed.to(torch::kInt64).argmax(1);
    return torch::where(row >= 0, row, fallback).unsqueeze(0).repeat({samples, 1});
  }

  static std::vector<double> evaluate(Environment& environment, const torch::Tensor& rows) {
    torch::Tensor proposed = rows.to(torch::kInt32).contiguous();
    return environment.evaluate(
        {proposed.data_ptr<std::int32_t>(), static_cast<std::size_t>(proposed.numel())});
  }

  Visit visit_all(Environment& environment, const GraphTensors& graph, const Relatives& relatives,
                  std::uint64_t number) {
    const torch::NoGradGuard no_gradients;
    at::Generator generator = generator_for(number);
    Visit visit;
    torch::Tensor rows = first_rows(environment, graph, options().samples);
    wander(rows, graph.allowed, generator);
    std::vector<double> values = evaluate(environment, rows);
    for (std::int64_t node = 0; node < rows.size(1); ++node) {
      if (node > 0 && environment.should_stop()) break;
      const torch::Tensor turns = torch::full({rows.size(0)}, node, torch::kInt64);
      const torch::Tensor likely =
          device_probabilities(network_->forward(graph, relatives, rows, turns),
                               graph.allowed[node], exploration(graph));
      const torch::Tensor actions = torch::multinomial(likely, 1, true, generator).squeeze(1);
      if (!network_->is_training()) actions[0].copy_(likely[0].argmax());
      visit.rows.push_back(rows);
      visit.actions.push_back(actions);
      rows = rows.clone();
      rows.select(1, node).copy_(actions);
      const std::vector<double> after = evaluate(environment, rows);
      visit.falls.push_back(
          ((torch::tensor(values, torch::kFloat64) - torch::tensor(after, torch::kFloat64)) /
           environment.scale())
              .to(torch::kFloat32));
      values = after;
    }
    for (const double value : values)
      visit.mean_value += value / static_cast<double>(values.size());
    return visit;
  }

  // In parts, whose gradients add up.
  Episode learn(Environment& environment, const GraphTensors& graph, const Relatives& relatives,
                const Visit& visit, const torch::Tensor& advantage) {
    const auto steps = static_cast<std::int64_t>(visit.rows.size());
    const std::int64_t samples = options().samples;
    const std::int64_t cells = samples * graph.features.size(0) * options().channels;
    const std::int64_t at_once = std::max<std::int64_t>(1, kCellsAtOnce / cells);
    double entropy = 0;
    zero_gradients();
    for (std::int64_t first = 0; first < steps; first += at_once) {
      if (environment.should_stop()) return Episode{.learned = false};
      const std::int64_t count = std::min(at_once, steps - first);
      const auto begin = static_cast<std::ptrdiff_t>(first);
      const auto end = static_cast<std::ptrdiff_t>(first + count);
      const torch::Tensor rows = torch::cat(
          std::vector<torch::Tensor>(visit.rows.begin() + begin, visit.rows.begin() + end));
      const torch::Tensor actions = torch::cat(
          std::vector<torch::Tensor>(visit.actions.begin() + begin, visit.actions.begin() + end));
      const torch::Tensor turns = torch::arange(first, first + count).repeat_interleave(samples);
      const torch::Tensor allowed = graph.allowed.index_select(0, turns);
      const torch::Tensor likely = device_probabilities(
          network_->forward(graph, relatives, rows, turns), allowed, exploration(graph));
      const torch::Tensor logarithm =
          likely.gather(1, actions.unsqueeze(1)).squeeze(1).clamp_min(1e-9).log();
      const torch::Tensor worth = advantage.narrow(1, first, count).t().reshape({-1});
      const torch::Tensor of_part = mean_entropy(likely, allowed);
      add_gradients(-(logarithm * worth).sum() / samples -
                    options().entropy * static_cast<double>(count) * of_part);
      entropy += of_part.item<double>() * static_cast<double>(count) / static_cast<double>(steps);
    }
    take_step();
    Episode episode;
    episode.entropy = entropy;
    episode.mean_value = visit.mean_value;
    return episode;
  }

  MessageNetwork network_;
};

}  // namespace

std::unique_ptr<Learner> make_placeto(const LearnerOptions& options) {
  return std::make_unique<PlacetoLearner>(options);
}

}  // namespace placewright::learned
