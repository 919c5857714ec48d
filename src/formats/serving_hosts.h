// Hosts that share a model of llama.cpp, as a file:
//
//   {"placewright": "llama-hosts", "version": 1,
//    "hosts": [{"name": "fast", "endpoint": "10.0.0.1:50052", "memory": 8e9,
//               "times": {"layer": 0.002, "entry": 0.0003, "rest": 0.004}}, …],
//    "measured": "llama, 16 layers, …"}
//
// A host without an endpoint is the machine that runs llama.cpp itself. `times` are written after a
// measurement; `measured` says of what.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/layer_split.h"

namespace placewright {

struct HostsFile {
  std::vector<ServingHost> hosts;
  std::string measured;  // empty: the hosts have no times
  std::vector<std::string> warnings = {};
};

// Throws InputError.
HostsFile read_hosts(std::string_view text, const std::string& path);
std::string write_hosts(const HostsFile& file);

}  // namespace placewright
