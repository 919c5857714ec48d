// The backends that the shared tests run on, each with small models and devices of its own.
//
//   openvino  the zoo's small models, on single cores
//   toy       tests/backends/toy: devices with memories of their own, between which tensors are
//   copied

#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "backends/target_devices.h"
#include "support/folder.h"
#include "support/test_name.h"
#include "support/toy_models.h"
#include "zoo/zoo.h"

namespace placewright::testing {

struct BackendCase {
  std::string backend;
  std::string model;

  friend std::ostream& operator<<(std::ostream& stream, const BackendCase& each) {
    return stream << each.backend << ' ' << each.model;
  }
};

inline std::string name_of_case(const ::testing::TestParamInfo<BackendCase>& info) {
  return test_name(info.param.backend + "_" + info.param.model);
}

inline std::vector<BackendCase> backend_cases() {
  return {{"openvino", "tiny-branches"}, {"openvino", "tiny-pair"}, {"openvino", "tiny-bert"},
          {"toy", "branches"},           {"toy", "pair"},           {"toy", "chain"}};
}

// One model of each backend.
inline std::vector<BackendCase> one_case_per_backend() {
  return {{"openvino", "tiny-branches"}, {"toy", "branches"}};
}

inline std::vector<std::string> core_devices(std::size_t count) {
  std::vector<std::string> names;
  for (const int core : allowed_cores()) {
    if (names.size() < count) names.push_back(name_of(target_of_cores({core})));
  }
  return names;
}

// Of this machine's first cores, or of the toy backend, those with memory of their own first.
inline std::vector<std::string> devices_for(const std::string& backend, std::size_t count) {
  if (backend != "toy") return core_devices(count);
  register_toy_backend();
  std::vector<std::string> names{"toy:0", "toy:1", "toy:host"};
  names.resize(std::min(count, names.size()));
  return names;
}

// Writes the model's file into the folder.
inline std::string model_file(const BackendCase& each, const std::string& folder) {
  if (each.backend != "toy") return make_zoo_model(each.model, folder).xml;
  register_toy_backend();
  return make_toy_model(each.model, folder);
}

}  // namespace placewright::testing
