#include "formats/llama_arguments.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {
namespace {

constexpr std::array kPrograms = {LlamaProgram{"llama-server", ","}, LlamaProgram{"llama-cli", ","},
                                  LlamaProgram{"llama-completion", ","},
                                  LlamaProgram{"llama-bench", "/", false}};

}  // namespace

std::span<const LlamaProgram> llama_programs() {
  return kPrograms;
}

std::vector<std::string> llama_arguments(const LlamaProgram& program, const std::string& path,
                                         std::span<const ServingHost> hosts,
                                         const LayerSplit& split) {
  std::vector<std::string> endpoints;
  std::vector<std::string> devices;
  std::vector<std::size_t> shares;
  std::vector<std::size_t> experts_here;
  std::size_t done = 0;
  std::size_t offloaded = 0;
  for (const HostShare& share : split) {
    for (std::size_t l = done; l < done + share.experts_here; ++l) experts_here.push_back(l);
    done += share.layers;
    if (hosts[share.host].is_here()) continue;
    endpoints.push_back(hosts[share.host].endpoint);
    devices.push_back(fmt::format("RPC{}", devices.size()));
    shares.push_back(share.layers);
    offloaded += share.layers;
  }
  std::vector<std::string> words = {"-m", path};
  if (endpoints.empty()) {
    words.insert(words.end(), {"-ngl", "0", "-dev", "none"});
    return words;
  }
  ++shares.back();  // the head goes with the last layers
  words.insert(words.end(), {"--rpc", fmt::format("{}", fmt::join(endpoints, ",")), "-dev",
                             fmt::format("{}", fmt::join(devices, program.between)), "-ngl",
                             std::to_string(offloaded + 1)});
  if (shares.size() > 1) {
    words.insert(words.end(), {"-ts", fmt::format("{}", fmt::join(shares, program.between))});
  }
  if (!experts_here.empty()) {
    words.insert(words.end(), {"-ot", fmt::format("blk\\.({})\\.ffn_.*_exps\\.=CPU",
                                                  fmt::join(experts_here, "|"))});
  }
  return words;
}

}  // namespace placewright
