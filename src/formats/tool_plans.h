// Plans as the tools that run large models take them.
//
// Ops must be named by the modules of the model, their parts joined by dots or slashes:
// "model.layers.12.mlp", "blk.3", "encoder/layer/0/attention/matmul". The first part that is a
// whole number is the number of a layer. What comes before the first layer belongs to the
// embedding, what comes after the last one to the head.
//
//   accelerate         a `device_map`: the shortest module names that tell the devices apart
//   torch-pipelining   the split points of `torch.distributed.pipelining.pipeline`, and each stage's device
//   llama.cpp          arguments for the layers of a GGUF file: -ngl, -ts and -ot
//   megatron           --pipeline-model-parallel-layout, "Ett|tt|ttL"
//   deepspeed          the boundaries of the stages of a `PipelineModule`, as its `parts`
//
// All throw std::invalid_argument, with a sentence, for a plan that the tool cannot express: a
// layer on two devices, stages out of order, names without layers.
//
// References: huggingface/accelerate, "Big Model Inference"; pytorch, torch.distributed.pipelining
// (`split_spec`, `SplitPoint`); ggml-org/llama.cpp, `llama-server --help`; NVIDIA/Megatron-LM,
// "Custom Pipeline Model Parallel Layout"; microsoft/DeepSpeed, `PipelineModule`.

#pragma once

#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

std::string accelerate_map(const Problem& problem, const Plan& plan);
std::string torch_pipelining_split(const Problem& problem, const Plan& plan);
std::string llama_cpp_arguments(const Problem& problem, const Plan& plan);
std::string megatron_layout(const Problem& problem, const Plan& plan);
std::string deepspeed_parts(const Problem& problem, const Plan& plan);

}  // namespace placewright
