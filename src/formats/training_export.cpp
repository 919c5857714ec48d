#include "formats/training_export.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

// What is the same in all stages of the plan.
struct Uniform {
  int degree = 1;
  std::size_t replicas = 1;
};

Uniform uniform(const TrainingPlan& plan) {
  const StageReplica& first = plan.stages.front().replicas.front();
  const Uniform common{first.degree, plan.stages.front().replicas.size()};
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    if (plan.stages[s].replicas.size() != common.replicas) {
      throw std::invalid_argument(
          fmt::format("stage {} has {} replicas and stage 1 has {}; the tool has one number", s + 1,
                      plan.stages[s].replicas.size(), common.replicas));
    }
    for (const StageReplica& replica : plan.stages[s].replicas) {
      if (replica.degree != common.degree) {
        throw std::invalid_argument(fmt::format(
            "stage {} has a group of {} GPUs and stage 1 one of {}; the tool has one size", s + 1,
            replica.degree, common.degree));
      }
      if (replica.micro_batches != first.micro_batches) {
        throw std::invalid_argument(
            fmt::format("replicas take {} and {} micro-batches; the tool gives each as many",
                        first.micro_batches, replica.micro_batches));
      }
    }
  }
  return common;
}

// Where the head begins: behind the last layer that is as large as a layer of the body.
std::size_t head_of(const TrainingProblem& problem) {
  const std::vector<double>& parameters = problem.sizes.front().parameters;
  const std::size_t last = problem.layers() - 1;
  if (last < 2) return last;
  const double largest = *std::max_element(parameters.begin() + 1,
                                           parameters.begin() + static_cast<std::ptrdiff_t>(last));
  constexpr double kBody = 0.1;
  std::size_t head = last;
  while (head > 1 && parameters[head - 1] < kBody * largest) --head;
  return head;
}

// Layers of the body in each stage.
std::vector<std::size_t> body_counts(const TrainingProblem& problem, const TrainingPlan& plan) {
  const std::size_t head = head_of(problem);
  std::vector<std::size_t> counts;
  for (const TrainingStage& stage : plan.stages) {
    const std::size_t first = std::clamp<std::size_t>(stage.first, 1, head);
    const std::size_t last = std::clamp<std::size_t>(stage.last, 1, head);
    counts.push_back(last - first);
  }
  return counts;
}

std::string megatron(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  const std::vector<std::size_t> counts = body_counts(problem, plan);
  std::vector<std::string> stages;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    stages.push_back((s == 0 ? "E" : "") + std::string(counts[s], 't') +
                     (s + 1 == counts.size() ? "L" : ""));
  }
  return fmt::format(
      "--tensor-model-parallel-size {} --pipeline-model-parallel-size {} --micro-batch-size {} "
      "--global-batch-size {} --pipeline-model-parallel-layout \"{}\"\n",
      common.degree, plan.stages.size(), plan.micro_batch, problem.batch, fmt::join(stages, "|"));
}

std::string deepspeed(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  std::vector<std::size_t> parts = {0};
  for (const TrainingStage& stage : plan.stages) parts.push_back(stage.last);
  const Json document = {
      {"num_stages", plan.stages.size()},
      {"parts", parts},
      {"tensor_parallel", common.degree},
      {"data_parallel", common.replicas},
      {"train_batch_size", problem.batch},
      {"train_micro_batch_size_per_gpu", plan.micro_batch},
      {"gradient_accumulation_steps", plan.stages.front().replicas.front().micro_batches}};
  return json_text(document, 2) + '\n';
}

std::string vllm(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  return fmt::format(
      "VLLM_PP_LAYER_PARTITION={} vllm serve MODEL --tensor-parallel-size {} "
      "--pipeline-parallel-size {} --data-parallel-size {}\n",
      fmt::join(body_counts(problem, plan), ","), common.degree, plan.stages.size(),
      common.replicas);
}

std::string sglang(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  return fmt::format(
      "SGLANG_PP_LAYER_PARTITION={} python -m sglang.launch_server --model-path MODEL --tp-size {} "
      "--pp-size {} --dp-size {}\n",
      fmt::join(body_counts(problem, plan), ","), common.degree, plan.stages.size(),
      common.replicas);
}

constexpr std::array kExports = {TrainingExport{"megatron", megatron},
                                 TrainingExport{"deepspeed", deepspeed},
                                 TrainingExport{"vllm", vllm}, TrainingExport{"sglang", sglang}};

}  // namespace

std::span<const TrainingExport> training_exports() {
  return kExports;
}

}  // namespace placewright
