// What all networks share: the optimiser, weights in and out, randomness, and advantages.

#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/utils.h>

#include "planners/learned/learner.h"

namespace placewright::learned {

class TorchLearner : public Learner {
 public:
  Weights weights() const final;
  Weights optimiser_state() const final;
  void restore(const Weights& weights, const Weights& optimiser_state) final;

 protected:
  explicit TorchLearner(const LearnerOptions& options);

  // Takes the network's parameters under the optimiser; called once, at the end of construction.
  void own(std::shared_ptr<torch::nn::Module> network);
  [[nodiscard]] const LearnerOptions& options() const { return options_; }

  // A generator for one episode: the same number, the same draws.
  [[nodiscard]] at::Generator generator_for(std::uint64_t episode) const;
  // One step of the optimiser down the gradient of `loss`.
  void improve(const torch::Tensor& loss);
  // The same in parts: gradients of several losses add up until the step is taken.
  void zero_gradients();
  void add_gradients(const torch::Tensor& loss);
  void take_step();
  // Rewards minus the baseline; rows are samples, columns steps. With a baseline they are scaled to
  // a deviation of one.
  torch::Tensor advantages(const torch::Tensor& returns);

 private:
  LearnerOptions options_;
  std::shared_ptr<torch::nn::Module> network_;
  std::unique_ptr<torch::optim::Adam> optimiser_;
  torch::Tensor moving_mean_;  // by step
};

std::unique_ptr<Learner> make_hsdag(const LearnerOptions& options);
std::unique_ptr<Learner> make_placeto(const LearnerOptions& options);
std::unique_ptr<Learner> make_rnn(const LearnerOptions& options);

// How many of `samples` placements wander: they look for what the policy has come to find unlikely,
// and nothing is learned from them but a new best placement.
std::int64_t wandering(std::int64_t samples);

// Replaces decisions of the last `wandering` rows of `actions` (sample x decision) by random
// allowed devices (`allowed`: decision x device): few in the first of them, all in half of them.
void wander(torch::Tensor& actions, const torch::Tensor& allowed, at::Generator& generator);

// scale / value of each, as a tensor: HSDAG's reward 1 / time, in units of a known plan.
torch::Tensor rewards(const std::vector<double>& values, double scale);

// Rewards, each with those that follow it, discounted; columns are steps.
torch::Tensor discounted(const torch::Tensor& rewards, double discount);

}  // namespace placewright::learned
