// Training plans as the tools that train and serve large models take them.
//
//   megatron    arguments of Megatron-LM: sizes, batches and --pipeline-model-parallel-layout
//   deepspeed   the boundaries of a `PipelineModule` and the batches of its configuration, as JSON
//   torch-pipelining   split points, ranks and schedule for `torch.distributed.pipelining`, as JSON
//   vllm        VLLM_PP_LAYER_PARTITION, tensor and pipeline sizes, as a command
//   sglang      SGLANG_PP_LAYER_PARTITION, tensor and pipeline sizes, as a command
//   llama.cpp   a command whose stages are RPC servers with one device each
//
// The first layer is the embedding. Layers at the end with far fewer parameters than the largest
// one between are norms of the head; the last layer is the head. All throw std::invalid_argument,
// with a sentence, for a plan that the tool cannot express: these tools have one degree, and in
// every stage as many replicas with equal shares.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "problem/training.h"

namespace placewright {

struct TrainingExport {
  std::string_view name;
  std::string (*write)(const TrainingProblem& problem, const TrainingPlan& plan);
};

std::span<const TrainingExport> training_exports();

}  // namespace placewright
