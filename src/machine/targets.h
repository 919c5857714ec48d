// What this machine has: cores, memory, and sets of cores as devices.
//
// On a machine without accelerators unequal devices are made from one CPU: `cpu:0` is core 0,
// `cpu:0-1` the cores 0 and 1, `cpu:0,2` the cores 0 and 2. Everything else is the name of an
// OpenVINO device. Cores are numbered as the operating system does, and only those count that this
// process may use.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

// A device as what executes models there calls it.
struct RuntimeDevice {
  std::string name;       // "CPU", "GPU.0"
  std::string full_name;  // "Intel(R) …"
  double memory = 0;      // bytes; 0: not known
};

// Where a part runs: an OpenVINO device, and for `CPU` the cores.
struct Target {
  std::string device;      // as OpenVINO calls it
  std::vector<int> cores;  // ascending; empty: not a CPU

  [[nodiscard]] int threads() const { return cores.empty() ? 1 : static_cast<int>(cores.size()); }
  friend bool operator==(const Target&, const Target&) = default;
};

// Reads `cpu:0-1` and the like; any other name is an OpenVINO device. Throws std::invalid_argument
// with one sentence.
Target target_named(std::string_view name);

// The shortest spelling: `cpu:0-1`.
std::string name_of(const Target& target);

// Devices of one kind take the same time: `cpu-1`, `cpu-2`, or the OpenVINO device.
std::string kind_of(const Target& target);

// The cores that this process may use.
std::vector<int> allowed_cores();

// Why the target cannot be used here; nothing when it can.
std::optional<std::string> obstacle(const Target& target,
                                    const std::vector<std::string>& openvino_devices);

std::string processor_name();
double total_memory();      // bytes
double available_memory();  // bytes

// Binds the calling thread to cores; throws std::runtime_error where the system refuses.
void bind_this_thread(const std::vector<int>& cores);

}  // namespace placewright
