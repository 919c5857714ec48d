// The nouns of running one large language model on several hosts: its layers in a row, what a host
// takes for one of them, and which host has which (docs/semantics.md, "Layers shared out over
// hosts").
//
// The hosts take turns: a token passes through all layers before the next one begins, so a split
// gains memory, not time, and each further host costs an entry.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "problem/cluster.h"

namespace placewright {

// Bytes of a layer while the model generates.
struct ModelLayer {
  double weights = 0;
  double experts = 0;  // of the weights: experts, which may stay on this machine
  double cache = 0;    // keys and values of the context
  double work = 1;     // seconds, as a multiple of those of the layers that were measured
};

struct LayeredModel {
  std::string name;
  std::vector<ModelLayer> layers;
  double head = 0;  // bytes of what comes behind the last layer, on the host of that layer
};

// Seconds of a token, measured (profiling/llama_bench.h). `entry` is what a host costs before it
// computes anything when another one follows it; `rest` is what stays of a token beside the layers
// where this host is the last: its entry, the head, and what the program itself does.
struct HostTimes {
  double layer = 0;
  double experts_here = kInfinity;  // of a layer whose experts are on this machine
  double entry = 0;
  double rest = 0;

  friend bool operator==(const HostTimes&, const HostTimes&) = default;
};

struct ServingHost {
  std::string name;
  std::string endpoint;       // HOST:PORT of its RPC server; empty: this machine
  double memory = kInfinity;  // bytes for weights, keys and values
  HostTimes times;

  [[nodiscard]] bool is_here() const { return endpoint.empty(); }

  friend bool operator==(const ServingHost&, const ServingHost&) = default;
};

// The next `layers` layers are on this host; the experts of the first `experts_here` of them are on
// this machine.
struct HostShare {
  std::size_t host = 0;
  std::size_t layers = 0;
  std::size_t experts_here = 0;

  friend bool operator==(const HostShare&, const HostShare&) = default;
};

using LayerSplit = std::vector<HostShare>;  // in the order of the layers

}  // namespace placewright
