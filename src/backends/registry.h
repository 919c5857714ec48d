// The backends that Placewright knows, and which of them serves a device or reads a model.
//
// A backend is one folder here, built as a plugin, and one entry in registry.cpp. The plugin
// exports
//
//   int placewright_backend_interface()             kBackendInterface, as it was built
//   const placewright::Runtime* placewright_backend()

#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"

namespace placewright {

struct BackendEntry {
  std::string name;                  // in problem files and in Target::backend
  std::string title;                 // in sentences
  std::string library;               // the plugin's file name, or an absolute path
  std::vector<std::string> devices;  // how the names of its devices begin
  std::string core_device;           // its device that runs on sets of cores; empty: it has none
  std::vector<std::string> endings;  // of the model files that it reads
  std::string how_to_get;            // one sentence
};

// The backend of files that name none, and of sets of cores.
inline constexpr std::string_view kDefaultBackend = "openvino";

// In the order in which they are asked. References stay valid.
const std::deque<BackendEntry>& backend_entries();

// Throws std::invalid_argument if there is one of that name.
void register_backend(BackendEntry entry);

// The empty name is the default backend. Throws std::invalid_argument with the list of the known
// ones.
const BackendEntry& backend_named(std::string_view name);

// The backend that reads such a file, by its ending (a folder with a saved TensorFlow model counts
// as
// `.pb`); nullptr if none does, so that it is a problem rather than a model.
const BackendEntry* backend_reading(const std::string& path);

// Loaded on first use. Throws RuntimeError if there is no plugin, if it was built for another
// interface, or if it cannot be loaded.
const Runtime& runtime_named(std::string_view backend);

}  // namespace placewright
