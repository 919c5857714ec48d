#include "planners/learned/plugin/torch_learner.h"

#include <stdexcept>

#include <fmt/format.h>

namespace placewright::learned {
namespace {

constexpr double kLargestGradient = 1;
constexpr double kMovingShare = 0.1;         // of the newest in the moving mean
constexpr std::int64_t kWanderingShare = 8;  // one sample in so many

NamedTensor named(std::string name, const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kFloat32).contiguous();
  const float* const data = flat.data_ptr<float>();
  return NamedTensor{
      std::move(name), {tensor.sizes().begin(), tensor.sizes().end()}, {data, data + flat.numel()}};
}

const NamedTensor& find(const Weights& weights, const std::string& name,
                        const torch::Tensor& like) {
  for (const NamedTensor& tensor : weights) {
    if (tensor.name != name) continue;
    if (tensor.shape != std::vector<std::int64_t>(like.sizes().begin(), like.sizes().end())) {
      throw std::invalid_argument(fmt::format("the tensor '{}' has another shape", name));
    }
    return tensor;
  }
  throw std::invalid_argument(fmt::format("the tensor '{}' is missing", name));
}

torch::Tensor tensor_of(const NamedTensor& tensor) {
  return torch::tensor(tensor.values, torch::kFloat32).reshape(tensor.shape);
}

}  // namespace

TorchLearner::TorchLearner(const LearnerOptions& options) : options_(options) {
  // The networks are small: the threads are for the evaluations. Several of torch's would wait for
  // each other more than they work, and the sums would depend on their number.
  at::set_num_threads(1);
  // The weights begin as the seed says.
  torch::manual_seed(options.seed);
}

void TorchLearner::own(std::shared_ptr<torch::nn::Module> network) {
  network_ = std::move(network);
  optimiser_ = std::make_unique<torch::optim::Adam>(
      network_->parameters(), torch::optim::AdamOptions(options_.learning_rate));
}

at::Generator TorchLearner::generator_for(std::uint64_t episode) const {
  // Dropout draws from the default generator.
  const std::uint64_t seed = options_.seed * 0x9E3779B97F4A7C15U + episode;
  torch::manual_seed(seed);
  return at::detail::createCPUGenerator(seed);
}

void TorchLearner::improve(const torch::Tensor& loss) {
  zero_gradients();
  add_gradients(loss);
  take_step();
}

void TorchLearner::zero_gradients() {
  optimiser_->zero_grad();
}

void TorchLearner::add_gradients(const torch::Tensor& loss) {
  loss.backward();
}

void TorchLearner::take_step() {
  torch::nn::utils::clip_grad_norm_(network_->parameters(), kLargestGradient);
  optimiser_->step();
}

torch::Tensor TorchLearner::advantages(const torch::Tensor& returns) {
  switch (options_.baseline) {
    case Baseline::none:
      return returns;
    case Baseline::mean: {
      const torch::Tensor centred =
          returns.size(0) > 1 ? returns - returns.mean(0, true) : returns - returns.mean();
      return centred / (centred.square().mean().sqrt() + 1e-8);
    }
    case Baseline::moving: {
      const torch::Tensor mean = returns.mean(0);
      moving_mean_ = moving_mean_.defined() && moving_mean_.sizes() == mean.sizes()
                         ? (1 - kMovingShare) * moving_mean_ + kMovingShare * mean
                         : mean;
      const torch::Tensor centred = returns - moving_mean_;
      return centred / (centred.square().mean().sqrt() + 1e-8);
    }
  }
  return returns;
}

Weights TorchLearner::weights() const {
  Weights weights;
  for (const auto& parameter : network_->named_parameters()) {
    weights.push_back(named(parameter.key(), parameter.value()));
  }
  return weights;
}

Weights TorchLearner::optimiser_state() const {
  Weights memory;
  for (const auto& parameter : network_->named_parameters()) {
    const auto found = optimiser_->state().find(parameter.value().unsafeGetTensorImpl());
    if (found == optimiser_->state().end()) continue;
    const auto& state = static_cast<const torch::optim::AdamParamState&>(*found->second);
    memory.push_back(named("adam.mean." + parameter.key(), state.exp_avg()));
    memory.push_back(named("adam.square." + parameter.key(), state.exp_avg_sq()));
    memory.push_back(
        NamedTensor{"adam.steps." + parameter.key(), {1}, {static_cast<float>(state.step())}});
  }
  if (moving_mean_.defined()) memory.push_back(named("moving_mean", moving_mean_));
  return memory;
}

void TorchLearner::restore(const Weights& weights, const Weights& optimiser_state) {
  const torch::NoGradGuard no_gradients;
  if (weights.size() != network_->named_parameters().size()) {
    throw std::invalid_argument("the weights are those of another network");
  }
  for (auto& parameter : network_->named_parameters()) {
    parameter.value().copy_(tensor_of(find(weights, parameter.key(), parameter.value())));
  }
  optimiser_->state().clear();
  if (optimiser_state.empty()) return;
  for (auto& parameter : network_->named_parameters()) {
    const auto present = std::any_of(
        optimiser_state.begin(), optimiser_state.end(),
        [&](const NamedTensor& tensor) { return tensor.name == "adam.steps." + parameter.key(); });
    if (!present) continue;
    auto state = std::make_unique<torch::optim::AdamParamState>();
    state->exp_avg(
        tensor_of(find(optimiser_state, "adam.mean." + parameter.key(), parameter.value())));
    state->exp_avg_sq(
        tensor_of(find(optimiser_state, "adam.square." + parameter.key(), parameter.value())));
    const NamedTensor& steps =
        find(optimiser_state, "adam.steps." + parameter.key(), torch::zeros({1}));
    state->step(static_cast<std::int64_t>(steps.values[0]));
    optimiser_->state()[parameter.value().unsafeGetTensorImpl()] = std::move(state);
  }
  for (const NamedTensor& tensor : optimiser_state) {
    if (tensor.name == "moving_mean") moving_mean_ = tensor_of(tensor);
  }
}

std::int64_t wandering(std::int64_t samples) {
  return samples / kWanderingShare;
}

void wander(torch::Tensor& actions, const torch::Tensor& allowed, at::Generator& generator) {
  const std::int64_t count = wandering(actions.size(0));
  if (count == 0) return;
  const torch::Tensor random =
      torch::multinomial(allowed.to(torch::kFloat32), count, true, generator).t();
  const torch::Tensor rate =
      (2 * (torch::arange(count, torch::kFloat32) + 1) / count).clamp_max(1).unsqueeze(1);
  const torch::Tensor moved = torch::rand(random.sizes(), generator) < rate;
  torch::Tensor last = actions.narrow(0, actions.size(0) - count, count);
  last.copy_(torch::where(moved, random.to(actions.dtype()), last));
}

torch::Tensor rewards(const std::vector<double>& values, double scale) {
  const torch::Tensor times = torch::tensor(values, torch::kFloat64) / scale;
  return times.clamp_min(1e-6).reciprocal().to(torch::kFloat32);
}

torch::Tensor discounted(const torch::Tensor& rewards, double discount) {
  std::vector<torch::Tensor> returns(static_cast<std::size_t>(rewards.size(1)));
  torch::Tensor later = torch::zeros({rewards.size(0)}, rewards.options());
  for (std::int64_t step = rewards.size(1); step-- > 0;) {
    later = rewards.select(1, step) + discount * later;
    returns[static_cast<std::size_t>(step)] = later;
  }
  return torch::stack(returns, 1);
}

}  // namespace placewright::learned
