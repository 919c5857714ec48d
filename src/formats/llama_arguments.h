// A split of a model over hosts, as the programs of llama.cpp take it.
//
// llama.cpp keeps the first layers on this machine and shares the last `-ngl`, the head counted as
// one of them, out over the devices of `-dev` in the proportions of `-ts`. The servers of `--rpc`
// are called RPC0, RPC1, … in their order; each is taken to have one device. `-ot` keeps experts
// here.
//
// Reference: ggml-org/llama.cpp, `llama-server --help`, `llama-bench --help`, tools/rpc.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "problem/layer_split.h"

namespace placewright {

// How a program of llama.cpp spells lists, and whether it is told the size of the context.
struct LlamaProgram {
  std::string_view name;
  std::string_view between;  // devices, proportions
  bool takes_context = true;
};

std::span<const LlamaProgram> llama_programs();

// Everything behind the program's name.
std::vector<std::string> llama_arguments(const LlamaProgram& program, const std::string& path,
                                         std::span<const ServingHost> hosts,
                                         const LayerSplit& split);

}  // namespace placewright
