// The MSR format (Tarnawski et al.): equal accelerators ("FPGAs") that exchange tensors through
// host memory, and CPU cores beside them.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"

namespace placewright {
namespace {

constexpr KindId kAccelerator{0};
constexpr KindId kCpu{1};

void read_devices(ProblemDraft& draft, JsonValue root) {
  const auto most = static_cast<std::int64_t>(kMostDevices);
  const auto accelerators = root.at("maxFPGAs").integer(0, most);
  const auto cpus = root.at("maxCPUs").integer(0, most);
  if (accelerators + cpus > most) {
    root.fail(fmt::format("has {} devices, at most {} are read", accelerators + cpus, most));
  }
  if (accelerators + cpus == 0) root.at("maxFPGAs").fail("there are no devices: maxCPUs is 0 too");
  const double memory = accelerators > 0 ? root.at("maxSizePerFPGA").amount() : 0;
  draft.cluster.kinds = {{"acc", false}, {"cpu", true}};
  for (std::int64_t i = 0; i < accelerators; ++i) {
    draft.cluster.devices.push_back(
        {.name = fmt::format("acc{}", i), .kind = kAccelerator, .memory = memory});
  }
  for (std::int64_t i = 0; i < cpus; ++i) {
    draft.cluster.devices.push_back({.name = fmt::format("cpu{}", i), .kind = kCpu});
  }
}

Op read_node(JsonValue node, const std::string& name) {
  Op op;
  op.name = name;
  op.memory = node.at("size").amount();
  if (const auto backward = node.find("isBackwardNode")) op.backward = backward->flag();
  const bool supported = node.at("supportedOnFpga").flag();
  op.time = {supported ? node.at("fpgaLatency").amount() : kUnsupported,
             node.at("cpuLatency").amount()};
  return op;
}

// Ops of one colour class share a device.
void add_colour(std::map<std::string, std::vector<OpId>>& classes, JsonValue node, OpId op) {
  const auto colour = node.find("colorClass");
  if (colour && !colour->is_null()) classes[colour->id()].push_back(op);
}

void read_colours(ProblemDraft& draft, JsonValue nodes) {
  std::map<std::string, std::vector<OpId>> classes;
  std::size_t next = 0;
  for (const JsonValue node : nodes.elements()) add_colour(classes, node, OpId{next++});
  for (auto& [colour, members] : classes) {
    if (members.size() > 1) draft.colocated.push_back(std::move(members));
  }
  std::sort(draft.colocated.begin(), draft.colocated.end());
}

// One tensor for each op that has readers: all edges that leave it carry the same data. Returns the
// first edge of each tensor.
std::vector<std::size_t> read_edges(ProblemDraft& draft, JsonValue edges, const NodeTable& table) {
  std::vector<std::size_t> first_edges;
  Table<OpId, TensorId> output(draft.ops.size());
  std::unordered_set<std::uint64_t> seen;
  std::size_t number = 0;
  for (const JsonValue edge : edges.elements()) {
    const OpId source = table.node(edge.at("sourceId"));
    const OpId target = table.node(edge.at("destId"));
    const double cost = edge.at("cost").amount();
    const auto size = edge.find("size");
    if (!output[source].valid()) {
      output[source] = TensorId{draft.tensors.size()};
      Tensor tensor;
      tensor.producer = source;
      tensor.host_time = cost;
      draft.tensors.push_back(std::move(tensor));
      first_edges.push_back(number);
    }
    Tensor& tensor = draft.tensors[output[source].index()];
    if (tensor.host_time != cost) {
      edge.at("cost").fail(
          fmt::format("the edges from node '{}' cost {} and {}, expected one cost for all of them",
                      draft.ops[source.index()].name, tensor.host_time, cost));
    }
    // Where the sizes differ (some training graphs) the largest is on the safe side.
    if (size && !size->is_null()) tensor.bytes = std::max(tensor.bytes, size->amount());
    const std::uint64_t pair = std::uint64_t{source.index()} << 32 | target.index();
    if (seen.insert(pair).second) tensor.consumers.push_back(target);
    ++number;
  }
  return first_edges;
}

ProblemFile read(JsonValue root, const std::string& name, bool /*cluster_follows*/) {
  ProblemFile file;
  ProblemDraft& draft = file.draft;
  draft.name = name;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.models = {Model{.name = name, .deadline = {}}};
  read_devices(draft, root);

  const JsonValue nodes = root.at("nodes");
  const NodeTable table(nodes);
  draft.ops.reserve(nodes.size());
  for (const JsonValue node : nodes.elements()) {
    draft.ops.push_back(read_node(node, table.names()[draft.ops.size()]));
  }
  if (table.names() != table.ids()) file.op_ids = table.ids();
  read_colours(draft, nodes);
  const std::vector<std::size_t> first_edges = read_edges(draft, root.at("edges"), table);

  file.place_of = [origin = root.file(), first_edges](DraftPart part, std::size_t index) -> Place {
    switch (part) {
      case DraftPart::op:
        return {origin, fmt::format("/nodes/{}", index)};
      case DraftPart::tensor:
        return {origin, fmt::format("/edges/{}", first_edges.at(index))};
      case DraftPart::colocation:
        return {origin, "/nodes"};
      default:
        return {origin, ""};
    }
  };
  return file;
}

}  // namespace

ProblemFormat msr_format() {
  return {
      .name = "msr",
      .recognised_by = "'maxFPGAs' or 'maxCPUs'",
      .recognises = [](JsonValue root) { return root.find("maxFPGAs") || root.find("maxCPUs"); },
      .read = read};
}

}  // namespace placewright
