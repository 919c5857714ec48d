// What this machine has: cores, memory, and sets of cores as devices.
//
// On a machine without accelerators unequal devices are made from one CPU: `cpu:0` is core 0,
// `cpu:0-1` the cores 0 and 1, `cpu:0,2` the cores 0 and 2. Cores are numbered as the operating
// system does, and only those count that this process may use. Which backend runs on them, and
// which other devices there are, is the business of backends/registry.h.
//
// The operating system moves threads between the cores of a set. `cpu:0-1:pinned` has the backend
// bind each of its threads to a core instead. The backend chooses among all cores of the process,
// so this makes sense for all of them together only: one set of all cores, or streams that share
// them out.

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
  bool pinned = false;     // the backend binds its threads to cores

  [[nodiscard]] int threads() const { return cores.empty() ? 1 : static_cast<int>(cores.size()); }
  friend bool operator==(const Target&, const Target&) = default;
};

bool share_a_core(const Target& a, const Target& b);

// All cores of several sets of equally many, none in two of them; nullopt if they are not such
// sets.
std::optional<Target> joined(const std::vector<Target>& targets);

// How names of core sets begin, and how those end whose threads the backend binds.
inline constexpr std::string_view kCoresPrefix = "cpu:";
inline constexpr std::string_view kPinnedEnding = ":pinned";

// Reads `cpu:0-1` and the like: the cores, ascending. Throws std::invalid_argument with one
// sentence.
std::vector<int> cores_named(std::string_view name);

// The shortest spelling: `cpu:0-1`, `cpu:0-1:pinned`; without cores the device's own name.
std::string name_of(const Target& target);

// Devices of one kind take the same time: `cpu-1`, `cpu-2`, `cpu-2-pinned`, or the device.
std::string kind_of(const Target& target);

// The cores that this process may use.
std::vector<int> allowed_cores();

// Each core, then neighbours by two, four and so on, then all: sets of which any two are disjoint
// or one within the other.
std::vector<std::vector<int>> nested_core_sets(const std::vector<int>& cores);

// Why these cores cannot be used here; nullopt if they can.
std::optional<std::string> obstacle(const std::vector<int>& cores);

std::string processor_name();
double total_memory();      // bytes
double available_memory();  // bytes

// Binds the calling thread to cores. Throws std::runtime_error if the system refuses.
void bind_this_thread(const std::vector<int>& cores);

}  // namespace placewright
