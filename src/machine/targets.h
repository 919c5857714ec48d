// What this machine has: cores, memory, and sets of cores as devices.
//
// On a machine without accelerators unequal devices are made from one CPU: `cpu:0` is core 0,
// `cpu:0-1` the cores 0 and 1, `cpu:0,2` the cores 0 and 2. Cores are numbered as the operating
// system does, and only those count that this process may use. Which backend runs on them, and
// which other devices there are, is the business of backends/registry.h.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

// Memory that is reached in one way: the host's, or a device's own.
struct MemorySpace {
  std::string owner;  // the device whose own it is; empty: the host's

  [[nodiscard]] bool is_host() const { return owner.empty(); }
  friend bool operator==(const MemorySpace&, const MemorySpace&) = default;
};

// A device as its backend describes it.
struct RuntimeDevice {
  std::string name;       // "CPU", "GPU.0"
  std::string full_name;  // "Intel(R) …"
  double memory = 0;      // bytes; 0: not stated
  MemorySpace space;      // where its tensors are
};

// Where a part runs: a device of a backend, and for host processors the cores.
struct Target {
  std::string backend;     // "openvino"
  std::string device;      // as the backend calls it
  std::vector<int> cores;  // ascending; empty: not a set of cores

  [[nodiscard]] int threads() const { return cores.empty() ? 1 : static_cast<int>(cores.size()); }
  friend bool operator==(const Target&, const Target&) = default;
};

bool share_a_core(const Target& a, const Target& b);

// How names of core sets begin.
inline constexpr std::string_view kCoresPrefix = "cpu:";

// Reads `cpu:0-1` and the like: the cores, ascending. Throws std::invalid_argument with one
// sentence.
std::vector<int> cores_named(std::string_view name);

// The shortest spelling: `cpu:0-1`; without cores the device's own name.
std::string name_of(const Target& target);

// Devices of one kind take the same time: `cpu-1`, `cpu-2`, or the device.
std::string kind_of(const Target& target);

// The cores that this process may use.
std::vector<int> allowed_cores();

// Each core, then neighbours by two, four and so on, then all: sets of which any two are disjoint or
// one within the other.
std::vector<std::vector<int>> nested_core_sets(const std::vector<int>& cores);

// Why these cores cannot be used here; nullopt if they can.
std::optional<std::string> obstacle(const std::vector<int>& cores);

std::string processor_name();
double total_memory();      // bytes
double available_memory();  // bytes

// Binds the calling thread to cores. Throws std::runtime_error if the system refuses.
void bind_this_thread(const std::vector<int>& cores);

}  // namespace placewright
