// Learning with the network of HSDAG: REINFORCE or PPO over groups.
//
// One pass of the network serves all `samples` placements of a step: they are drawn from the same
// probabilities, and the gradient of REINFORCE over all of them is one backward pass, since
//
//   sum over samples b and groups g of A_b log p(g, d_bg)  =  sum over g, d of W(g, d) log p(g, d)
//   W(g, d) = sum of A_b over the samples with g on d.

#include <stdexcept>

#include <fmt/format.h>

#include "planners/learned/plugin/hsdag_network.h"
#include "planners/learned/plugin/torch_learner.h"

namespace placewright::learned {
namespace {

constexpr int kPpoEpochs = 5;
constexpr double kPpoClip = 0.2;
constexpr double kMostExploration = 0.5;

// One pass, what was drawn from it, and what it was worth.
struct Step {
  GroupScores pass;
  torch::Tensor probabilities;  // group x device
  torch::Tensor actions;        // sample x group; -1 where a repair has split the group
  torch::Tensor state;          // what the pass began with
  std::vector<double> values;   // sample
};

class HsdagLearner final : public TorchLearner {
 public:
  explicit HsdagLearner(const LearnerOptions& options) : TorchLearner(options), network_(options) {
    own(network_.ptr());
  }

  Episode play(Environment& environment, std::uint64_t number) override {
    at::Generator generator = generator_for(number);
    network_->train();
    const GraphTensors graph(environment.graph());
    torch::Tensor state = no_state(graph);
    std::vector<Step> steps;
    for (std::int64_t i = 0; i < options().steps; ++i) {
      if (i > 0 && environment.should_stop()) break;
      steps.push_back(take_step(environment, graph, state, options().samples, generator));
      const GroupScores& pass = steps.back().pass;
      state = state + pass.embedding.detach().index_select(0, pass.group_of);
    }
    Episode episode = summary(steps);
    episode.learned = !environment.should_stop();
    if (episode.learned) learn(environment, graph, steps);
    return episode;
  }

  Episode propose(Environment& environment, std::uint64_t number) override {
    const torch::NoGradGuard no_gradients;
    at::Generator generator = generator_for(number);
    network_->eval();
    const GraphTensors graph(environment.graph());
    std::vector<Step> steps;
    steps.push_back(take_step(environment, graph, no_state(graph), options().samples, generator));
    return summary(steps);
  }

 private:
  [[nodiscard]] torch::Tensor no_state(const GraphTensors& graph) const {
    return torch::zeros({graph.features.size(0), network_->channels()});
  }

  [[nodiscard]] torch::Tensor probabilities(const GroupScores& pass) const {
    const double groups = static_cast<double>(pass.scores.size(0));
    const double exploration =
        network_->is_training() ? std::min(kMostExploration, options().exploration / groups) : 0;
    return device_probabilities(pass.scores, pass.allowed, exploration);
  }

  Step take_step(Environment& environment, const GraphTensors& graph, const torch::Tensor& state,
                 std::int64_t samples, at::Generator& generator) {
    Step step;
    step.state = state;
    step.pass = network_->forward(graph, environment.graph(), state, nullptr);
    step.probabilities = probabilities(step.pass);
    torch::Tensor drawn =
        torch::multinomial(step.probabilities.detach(), samples, true, generator).t().contiguous();
    // Without learning the most likely placement comes first.
    if (!network_->is_training()) drawn.select(0, 0).copy_(step.probabilities.argmax(1));
    const auto near =
        static_cast<std::int64_t>(options().neighbours * static_cast<double>(samples));
    torch::Tensor played = drawn.narrow(0, 0, samples - near);
    wander(played, step.pass.allowed, generator);
    torch::Tensor rows = drawn.index_select(1, step.pass.group_of).to(torch::kInt32).contiguous();
    const std::span<std::int32_t> all(rows.data_ptr<std::int32_t>(),
                                      static_cast<std::size_t>(rows.numel()));
    const auto split = static_cast<std::size_t>(played.size(0) * rows.size(1));
    step.values = environment.evaluate(all.first(split));
    if (near > 0) {
      const torch::Tensor& groups = step.pass.group_of;
      environment.explore(
          all.subspan(split),
          {groups.data_ptr<std::int64_t>(), static_cast<std::size_t>(groups.numel())},
          options().guided);
    }
    const std::int64_t learned_from = played.size(0) - wandering(played.size(0));
    step.values.resize(static_cast<std::size_t>(learned_from));
    step.actions = actions_of_groups(rows.narrow(0, 0, learned_from), step.pass);
    return step;
  }

  static torch::Tensor best_row(Environment& environment) {
    const auto best = environment.best();
    return torch::tensor(std::vector<std::int32_t>(best.begin(), best.end())).unsqueeze(0);
  }

  // A group's device where all its nodes are there, else -1.
  static torch::Tensor actions_of_groups(const torch::Tensor& rows, const GroupScores& pass) {
    const std::int64_t groups = pass.scores.size(0);
    const torch::Tensor values = rows.t().to(torch::kFloat32);
    const torch::Tensor index = pass.group_of.unsqueeze(1).expand_as(values);
    const torch::Tensor empty = torch::zeros({groups, rows.size(0)});
    const torch::Tensor least = empty.scatter_reduce(0, index, values, "amin", false);
    const torch::Tensor most = empty.scatter_reduce(0, index, values, "amax", false);
    return torch::where(least == most, least, -1).t().to(torch::kInt64).contiguous();
  }

  void learn(Environment& environment, const GraphTensors& graph, const std::vector<Step>& steps) {
    std::vector<torch::Tensor> columns;
    for (const Step& step : steps) columns.push_back(rewards(step.values, environment.scale()));
    const torch::Tensor advantage =
        advantages(discounted(torch::stack(columns, 1), options().discount));
    if (options().algorithm == Algorithm::reinforce) {
      torch::Tensor loss = torch::zeros({});
      for (std::size_t i = 0; i < steps.size(); ++i) {
        loss = loss + reinforce_loss(steps[i], advantage.select(1, static_cast<std::int64_t>(i))) +
               regularisation(steps[i].pass, steps[i].probabilities, environment);
      }
      improve(loss);
      return;
    }
    for (int epoch = 0; epoch < kPpoEpochs; ++epoch) {
      torch::Tensor loss = torch::zeros({});
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const GroupScores pass =
            network_->forward(graph, environment.graph(), steps[i].state, &steps[i].pass.parse);
        const torch::Tensor now = probabilities(pass);
        loss = loss + ppo_loss(steps[i], now, advantage.select(1, static_cast<std::int64_t>(i))) +
               regularisation(pass, now, environment);
      }
      improve(loss);
    }
  }

  // W(g, d) as in the head of this file, over the number of samples.
  [[nodiscard]] static torch::Tensor weights_of(const Step& step, const torch::Tensor& advantage) {
    const torch::Tensor& actions = step.actions;
    const torch::Tensor known = (actions >= 0).to(torch::kFloat32);
    const torch::Tensor worth = known * advantage.unsqueeze(1) / actions.size(0);
    return torch::zeros_like(step.probabilities, torch::kFloat32)
        .scatter_add(1, actions.clamp_min(0).t(), worth.t());
  }

  static torch::Tensor reinforce_loss(const Step& step, const torch::Tensor& advantage) {
    return -(weights_of(step, advantage) * step.probabilities.clamp_min(1e-9).log()).sum();
  }

  // Each group's ratio is clipped by itself.
  static torch::Tensor ppo_loss(const Step& step, const torch::Tensor& now,
                                const torch::Tensor& advantage) {
    const torch::Tensor known = (step.actions >= 0).to(torch::kFloat32);
    const torch::Tensor chosen = step.actions.clamp_min(0).t();
    const torch::Tensor ratio = now.gather(1, chosen).t() /
                                step.probabilities.detach().gather(1, chosen).t().clamp_min(1e-9);
    const torch::Tensor gain = advantage.unsqueeze(1);
    const torch::Tensor clipped = ratio.clamp(1 - kPpoClip, 1 + kPpoClip);
    return -(torch::min(ratio * gain, clipped * gain) * known).sum() / step.actions.size(0);
  }

  // Towards more entropy, and towards the best placement so far.
  [[nodiscard]] torch::Tensor regularisation(const GroupScores& pass,
                                             const torch::Tensor& probabilities,
                                             Environment& environment) const {
    const auto groups = static_cast<double>(pass.scores.size(0));
    torch::Tensor loss = -options().entropy * groups * mean_entropy(probabilities, pass.allowed);
    if (options().imitation == 0) return loss;
    const torch::Tensor actions = actions_of_groups(best_row(environment), pass).squeeze(0);
    const torch::Tensor known = (actions >= 0).to(torch::kFloat32);
    const torch::Tensor likely =
        probabilities.gather(1, actions.clamp_min(0).unsqueeze(1)).squeeze(1).clamp_min(1e-9).log();
    return loss - options().imitation * (likely * known).sum();
  }

  static Episode summary(const std::vector<Step>& steps) {
    Episode episode;
    double count = 0;
    for (const Step& step : steps) {
      for (const double value : step.values) episode.mean_value += value;
      count += static_cast<double>(step.values.size());
    }
    episode.mean_value /= count;
    const Step& last = steps.back();
    episode.entropy = mean_entropy(last.probabilities, last.pass.allowed).item<double>();
    const std::int64_t* const groups = last.pass.group_of.data_ptr<std::int64_t>();
    episode.group_of.assign(groups, groups + last.pass.group_of.numel());
    return episode;
  }

  HsdagNetwork network_;
};

}  // namespace

std::unique_ptr<Learner> make_hsdag(const LearnerOptions& options) {
  return std::make_unique<HsdagLearner>(options);
}

}  // namespace placewright::learned
