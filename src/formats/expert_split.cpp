#include "formats/expert_split.h"

#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace placewright {
namespace {

class SplitReader {
 public:
  SplitReader(const Problem& problem, std::span<const std::string> op_ids)
      : problem_(problem), placement_(problem.op_count()) {
    for (const OpId op : problem.ops()) {
      ops_.emplace(op_ids.empty() ? problem.op(op).name : op_ids[op.index()], op);
    }
  }

  void place(JsonValue lists, bool on_host, std::string_view noun) {
    std::vector<DeviceId> devices;
    for (const DeviceId device : problem_.devices()) {
      if (problem_.on_host(device) == on_host) devices.push_back(device);
    }
    std::size_t number = 0;
    for (const JsonValue list : lists.elements()) {
      const JsonValue nodes = list.at("nodes");
      if (number >= devices.size() && nodes.elements().size() > 0) {
        list.fail(fmt::format("the problem has only {} {}", devices.size(), noun));
      }
      for (const JsonValue id : nodes.elements()) place_node(id, devices[number]);
      ++number;
    }
  }

  Placement finish(JsonValue root) {
    for (const GroupId group : problem_.groups()) {
      DeviceId shared;
      for (const OpId op : problem_.group_ops(group)) {
        if (placement_[op].valid()) shared = placement_[op];
      }
      for (const OpId op : problem_.group_ops(group)) {
        if (!placement_[op].valid()) placement_[op] = shared;
      }
    }
    for (const OpId op : problem_.ops()) {
      if (!placement_[op].valid()) {
        root.fail(fmt::format("the op '{}' is in no list", problem_.op(op).name));
      }
    }
    return std::move(placement_);
  }

 private:
  void place_node(JsonValue id, DeviceId device) {
    const auto found = ops_.find(id.id());
    if (found == ops_.end())
      id.fail(fmt::format("the problem has no node with the id {}", id.id()));
    DeviceId& place = placement_[found->second];
    if (place.valid() && place != device) {
      id.fail(fmt::format("the node {} is on '{}' already", id.id(), problem_.device(place).name));
    }
    place = device;
  }

  const Problem& problem_;
  Placement placement_;
  std::unordered_map<std::string, OpId> ops_;
};

}  // namespace

PlanFile plan_of_split(JsonValue root, const Problem& problem,
                       std::span<const std::string> op_ids) {
  SplitReader reader(problem, op_ids);
  reader.place(root.at("fpgas"), false, "accelerators");
  if (const auto cpus = root.find("cpus")) reader.place(*cpus, true, "host devices");
  PlanFile file;
  file.plan.placement = reader.finish(root);
  file.status = Status::feasible;
  file.planner = "expert";
  return file;
}

}  // namespace placewright
