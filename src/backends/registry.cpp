#include "backends/registry.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {
namespace {

namespace fs = std::filesystem;

std::deque<BackendEntry>& entries() {
  static std::deque<BackendEntry> known{
      {.name = std::string(kDefaultBackend),
       .title = "OpenVINO",
       .library = "libplacewright_openvino.so",
       .devices = {"CPU", "GPU", "NPU"},
       .core_device = "CPU",
       .endings = {".xml", ".onnx", ".pb", ".tflite", ".pdmodel", ".prototxt"},
       .how_to_get = "install the Python package openvino and build again"},
  };
  return known;
}

}  // namespace

const std::deque<BackendEntry>& backend_entries() {
  return entries();
}

void register_backend(BackendEntry entry) {
  for (const BackendEntry& other : entries()) {
    if (other.name != entry.name) continue;
    throw std::invalid_argument(fmt::format("there is a backend '{}' already", entry.name));
  }
  entries().push_back(std::move(entry));
}

const BackendEntry& backend_named(std::string_view name) {
  if (name.empty()) name = kDefaultBackend;
  std::vector<std::string> known;
  for (const BackendEntry& entry : entries()) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  throw std::invalid_argument(
      fmt::format("no backend is called '{}', there is: {}", name, fmt::join(known, ", ")));
}

const BackendEntry* backend_reading(const std::string& path) {
  const fs::path file = fs::is_directory(path) ? fs::path(path) / "saved_model.pb" : fs::path(path);
  if (file != path && !fs::exists(file)) return nullptr;
  const std::string ending = file.extension().string();
  for (const BackendEntry& entry : entries()) {
    if (std::find(entry.endings.begin(), entry.endings.end(), ending) != entry.endings.end()) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace placewright
