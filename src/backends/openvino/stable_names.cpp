#include "backends/openvino/stable_names.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include <fmt/format.h>
#include <openvino/core/node.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

std::vector<std::string> names_of(const ov::Model& model) {
  std::vector<std::string> names;
  for (const auto& node : model.get_ordered_ops()) names.push_back(node->get_friendly_name());
  return names;
}

void replace_made_up_names(ov::Model& model, const std::vector<std::string>& first) {
  const auto nodes = model.get_ordered_ops();
  if (nodes.size() != first.size()) {
    throw RuntimeError("OpenVINO read two different graphs from the same file");
  }
  std::unordered_map<const ov::Node*, std::size_t> position;
  for (std::size_t i = 0; i < nodes.size(); ++i) position.emplace(nodes[i].get(), i);

  // By position: the name that a node has from the file, or that of its first user; readers of a
  // node follow it in the order. Empty if no user has one.
  std::vector<std::string> origin(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const auto& node = nodes[i];
    if (node->get_friendly_name() == first[i]) {
      origin[i] = first[i];
      continue;
    }
    std::size_t user = nodes.size();
    for (const auto& output : node->outputs()) {
      for (const auto& reader : output.get_target_inputs()) {
        user = std::min(user, position.at(reader.get_node()));
      }
    }
    if (user < nodes.size()) origin[i] = origin[user];
    const std::string type = node->get_type_name();
    node->set_friendly_name(origin[i].empty() ? type : fmt::format("{}/{}", origin[i], type));
  }
}

}  // namespace placewright::openvino
