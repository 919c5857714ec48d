// Names of devices as targets, and what a target is on this machine.
//
// `cpu:0-1` and `cpu:0-1:pinned` are sets of cores, run by the default backend. Any other name
// belongs to the backend that serves names which begin like it; a name that no backend serves is
// refused.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/registry.h"
#include "machine/disturbance.h"
#include "machine/targets.h"

namespace placewright {

// Throws std::invalid_argument with one sentence.
Target target_named(std::string_view name);

// These cores under the default backend.
Target target_of_cores(std::vector<int> cores);

// Nested sets of the cores that this process may use, down to single ones; of a backend that does
// not run on cores, one target for each of its devices.
std::vector<Target> all_targets(const BackendEntry& backend);

// Reads and checks the names: each can be used here, none twice. Throws
// std::invalid_argument with one sentence.
std::vector<Target> targets_named(const std::vector<std::string>& names);

// Why the targets cannot be used together here; nullopt if they can.
std::optional<std::string> obstacle(const std::vector<Target>& targets);

// How a part is compiled for the target.
CompileOptions compile_options(const Target& target);

// A set of cores has no backend's description, so that none is loaded for it: host memory, whose
// size is not stated.
RuntimeDevice device_of(const Target& target);
std::vector<RuntimeDevice> devices_of(const std::vector<Target>& targets);

// The device of a backend that computes what outputs are compared with.
Target reference_target(std::string_view backend);

// Nullptr: the device cannot tell whether others use it.
std::unique_ptr<DisturbanceProbe> probe_of(const Target& target);

}  // namespace placewright
