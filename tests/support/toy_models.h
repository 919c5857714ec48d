// The backend of tests/backends/toy, and models for it.

#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "backends/registry.h"
#include "support/locations.h"

namespace placewright::testing {

inline BackendEntry toy_entry() {
  return {.name = "toy",
          .title = "the toy backend",
          .library = plugin_path("toy"),
          .devices = {"toy:"},
          .core_device = {},
          .endings = {".toy"},
          .how_to_get = "build the tests"};
}

inline void register_toy_backend() {
  [[maybe_unused]] static const bool once = [] {
    register_backend(toy_entry());
    return true;
  }();
}

// A chain of fused pairs, long enough to be cut anywhere.
inline std::string toy_chain() {
  std::string text = "input x 48\n";
  std::string last = "x";
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("mix m{} {} 48 {}\nrelu r{} m{}\n", i, last, i + 1, i, i);
    last = fmt::format("r{}", i);
  }
  return text + "output r11\n";
}

// Writes NAME.toy into the folder and returns its path.
inline std::string make_toy_model(const std::string& name, const std::string& folder) {
  const std::map<std::string, std::string> models{
      {"branches",
       "input x 64\nmix stem x 64 1\nrelu entry stem\nmix left entry 32 2\nrelu left2 left\n"
       "mix right entry 32 3\nscale right2 right 0.5\nadd joined left2 right2\n"
       "mix head joined 16 4\nadd twice head head\noutput twice\n"},
      {"pair",
       "input a 32\ninput b 32\nmix ma a 32 1\nmix mb b 32 2\nadd sum ma mb\nrelu positive sum\n"
       "scale down mb 0.25\nmix last positive 8 3\noutput last\noutput down\n"},
      {"chain", toy_chain()}};
  std::filesystem::create_directories(folder);
  const std::string path = (std::filesystem::path(folder) / (name + ".toy")).string();
  std::ofstream(path) << models.at(name);
  return path;
}

}  // namespace placewright::testing
