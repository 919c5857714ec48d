// Moirai's format: times by device, transfer times by edge and pair of devices.

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"

namespace placewright {
namespace {

void read_devices(ProblemDraft& draft, JsonValue devices) {
  check_device_count(devices);
  for (const JsonValue record : devices.elements()) {
    const auto name = record.find("name");
    Device device;
    device.name =
        name ? std::string(name->text()) : fmt::format("d{}", draft.cluster.devices.size());
    device.kind = KindId{draft.cluster.kinds.size()};
    device.memory = record.at("memory").amount();
    // Times are by device, so each device is a kind of its own.
    draft.cluster.kinds.push_back({device.name, false});
    draft.cluster.devices.push_back(std::move(device));
  }
}

Op read_node(JsonValue node, const std::string& name, std::size_t device_count) {
  Op op;
  op.name = name;
  if (const auto type = node.find("type")) op.type = type->id();
  op.memory = node.at("memory").amount();
  const JsonValue times = node.at("time");
  if (times.elements().size() != device_count) {
    times.fail(
        fmt::format("has {} times, expected {}, one for each device", times.size(), device_count));
  }
  for (const JsonValue time : times.elements()) op.time.push_back(time_or_null(time));
  return op;
}

Place place_in_moirai(const std::string& file, DraftPart part, std::size_t index) {
  switch (part) {
    case DraftPart::kind:
    case DraftPart::device:
      return {file, fmt::format("/devices/{}", index)};
    case DraftPart::op:
      return {file, fmt::format("/nodes/{}", index)};
    case DraftPart::tensor:
      return {file, fmt::format("/edges/{}", index)};
    default:
      return {file, ""};
  }
}

ProblemFile read(JsonValue root, const std::string& name, bool /*cluster_follows*/) {
  ProblemFile file;
  ProblemDraft& draft = file.draft;
  draft.name = name;
  draft.objective = Objective::latency;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.models = {Model{.name = name, .deadline = {}}};
  read_devices(draft, root.at("devices"));

  const JsonValue nodes = root.at("nodes");
  const NodeTable table(nodes);
  draft.ops.reserve(nodes.size());
  for (const JsonValue node : nodes.elements()) {
    draft.ops.push_back(
        read_node(node, table.names()[draft.ops.size()], draft.cluster.devices.size()));
  }
  if (table.names() != table.ids()) file.op_ids = table.ids();

  // Costs are per edge, so each edge is a tensor of its own.
  for (const JsonValue edge : root.at("edges").elements()) {
    Tensor tensor;
    tensor.producer = table.node(edge.at("source"));
    tensor.consumers = {table.node(edge.at("target"))};
    tensor.link_times = transfer_table(edge.at("comm"), draft.cluster.devices.size());
    draft.tensors.push_back(std::move(tensor));
  }
  file.place_of = [origin = root.file()](DraftPart part, std::size_t index) {
    return place_in_moirai(origin, part, index);
  };
  return file;
}

}  // namespace

ProblemFormat moirai_format() {
  return {.name = "moirai",
          .recognised_by = "'devices' and 'nodes'",
          .recognises = [](JsonValue root) { return root.find("devices") && root.find("nodes"); },
          .read = read};
}

}  // namespace placewright
