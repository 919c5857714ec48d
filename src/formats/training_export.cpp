#include "formats/training_export.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"
#include "formats/llama_arguments.h"

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

// What serves models: a variable with the layers of each stage, and a command with the sizes.
struct Server {
  std::string_view variable;
  std::string_view command;
  std::string_view tensor;
  std::string_view pipeline;
  std::string_view data;
};
constexpr Server kVllm = {"VLLM_PP_LAYER_PARTITION", "vllm serve MODEL", "--tensor-parallel-size",
                          "--pipeline-parallel-size", "--data-parallel-size"};
constexpr Server kSglang = {"SGLANG_PP_LAYER_PARTITION",
                            "python -m sglang.launch_server --model-path MODEL", "--tp-size",
                            "--pp-size", "--dp-size"};

template <const Server& server>
std::string served(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  return fmt::format("{}={} {} {} {} {} {} {} {}\n", server.variable,
                     fmt::join(body_counts(problem, plan), ","), server.command, server.tensor,
                     common.degree, server.pipeline, plan.stages.size(), server.data,
                     common.replicas);
}

// Modules of the body are "layers.N" here, the head is "head": the names are those of no model.
std::string torch_pipelining(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  const std::size_t head = head_of(problem);
  Json split = Json::object();
  for (const TrainingStage& stage : plan.stages) {
    if (stage.first == 0) continue;
    split[stage.first < head ? fmt::format("layers.{}", stage.first - 1) : "head"] = "beginning";
  }
  if (split.size() + 1 != plan.stages.size()) {
    throw std::invalid_argument(
        "two stages begin inside the head, which no split point tells apart");
  }
  Json ranks = Json::array();
  std::size_t rank = 0;
  for (const TrainingStage& stage : plan.stages) {
    Json of_stage = Json::array();
    for (const StageReplica& replica : stage.replicas) {
      for (int i = 0; i < replica.degree; ++i) of_stage.push_back(rank++);
    }
    ranks.push_back(std::move(of_stage));
  }
  const Json document = {{"split_spec", std::move(split)},
                         {"ranks", std::move(ranks)},
                         {"schedule", "1F1B"},
                         {"micro_batch", plan.micro_batch},
                         {"n_microbatches", plan.stages.front().replicas.front().micro_batches},
                         {"tensor_parallel", common.degree},
                         {"data_parallel", common.replicas}};
  return json_text(document, 2) + '\n';
}

// Each stage is a host with one device.
std::string llama_cpp(const TrainingProblem& problem, const TrainingPlan& plan) {
  const Uniform common = uniform(plan);
  if (common.degree > 1 || common.replicas > 1) {
    throw std::invalid_argument(
        fmt::format("stages have {} replicas of {} GPUs; llama.cpp gives a stage one device",
                    common.replicas, common.degree));
  }
  std::vector<ServingHost> hosts;
  LayerSplit split;
  for (const std::size_t count : body_counts(problem, plan)) {
    if (count == 0) throw std::invalid_argument("a stage has no layer of the body");
    split.push_back({hosts.size(), count, 0});
    ServingHost& host = hosts.emplace_back();
    host.endpoint = fmt::format("STAGE{}:50052", hosts.size());
  }
  return fmt::format(
      "llama-server {}\n",
      fmt::join(llama_arguments(llama_programs().front(), "MODEL.gguf", hosts, split), " "));
}

constexpr std::array kExports = {TrainingExport{"megatron", megatron},
                                 TrainingExport{"deepspeed", deepspeed},
                                 TrainingExport{"torch-pipelining", torch_pipelining},
                                 TrainingExport{"vllm", served<kVllm>},
                                 TrainingExport{"sglang", served<kSglang>},
                                 TrainingExport{"llama.cpp", llama_cpp}};

}  // namespace

std::span<const TrainingExport> training_exports() {
  return kExports;
}

}  // namespace placewright
