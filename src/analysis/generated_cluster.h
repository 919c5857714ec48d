// The devices of a generated problem (generate.h), and how fast each kind of them is.
//
//   devices       each pair joined by a link of its own
//   accelerators  exchange tensors through the host's memory ...
//   cores         ... of which these are
//   shared_cores  sets of cores (each, by two, by four, ..., all) in one memory, or in that of
//                 `sockets`, no set in two, each pair joined by a link; beside accelerators they are
//                 the host
//   streams       each device, or accelerator, is a GPU of so many streams, which share its
//                 multiprocessors and its memory
//
// O(devices^2).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/generate.h"
#include "planners/random_numbers.h"

namespace placewright {

// How many times slower than a device of speed 1, in 1/1024.
struct Slowness {
  std::uint64_t heavy;
  std::uint64_t light;
};

struct GeneratedKind {
  Slowness slowness;
  bool core_set = false;  // what a cut costs depends on the tensor
  bool stream = false;    // ops take shares of its resource
};

struct GeneratedCluster {
  Cluster cluster;
  std::vector<GeneratedKind> kinds;  // of the cluster
};

// Whether tensors go through the memory of a host.
inline bool has_host(const GenerateOptions& options) {
  return options.accelerators + options.cores > 0;
}

// The options do not contradict each other (generate.cpp says so).
GeneratedCluster generate_cluster(const GenerateOptions& options, RandomNumbers& random);

}  // namespace placewright
