#include "backends/affinity.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/target_devices.h"
#include "formats/json_text.h"

namespace placewright {

std::string affinity_json(const Problem& problem, const Plan& plan) {
  nlohmann::ordered_json affinity = nlohmann::ordered_json::object();
  std::vector<std::string> devices;
  for (const OpId op : problem.ops()) {
    const Target target = target_named(problem.device(plan.placement[op]).name);
    if (target.backend != kDefaultBackend) {
      throw std::invalid_argument(fmt::format("'{}' is not an OpenVINO device", name_of(target)));
    }
    const std::string& device = target.device;
    affinity[problem.op(op).name] = device;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  const nlohmann::ordered_json document = {
      {"device", fmt::format("HETERO:{}", fmt::join(devices, ","))},
      {"affinity", std::move(affinity)}};
  return json_text(document, 1) + '\n';
}

std::string affinity_path(const std::string& model_path) {
  return std::filesystem::path(model_path).replace_extension(".affinity.json").string();
}

}  // namespace placewright
