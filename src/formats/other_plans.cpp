#include "formats/other_plans.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/expert_split.h"
#include "formats/module_names.h"

namespace placewright {
namespace {

DeviceId device_named(const Problem& problem, std::string_view name) {
  for (const DeviceId device : problem.devices()) {
    if (problem.device(device).name == name) return device;
  }
  return {};
}

DeviceId device_of(JsonValue value, const Problem& problem) {
  DeviceId device = device_named(problem, value.id());
  if (!device.valid() && value.is_integer()) {
    const auto number = static_cast<std::size_t>(value.natural());
    device = device_named(problem, fmt::format("cuda:{}", number));
    if (!device.valid() && number < problem.device_count()) device = DeviceId{number};
  }
  if (device.valid()) return device;
  std::vector<std::string> names;
  for (const DeviceId known : problem.devices()) names.push_back(problem.device(known).name);
  value.fail(fmt::format("the problem has no device '{}' (it has {})", value.id(),
                         fmt::join(names, ", ")));
}

PlanFile plan_by(std::string planner, Placement placement) {
  PlanFile file;
  file.plan.placement = std::move(placement);
  file.status = Status::feasible;
  file.planner = std::move(planner);
  return file;
}

bool is_expert_split(JsonValue root) {
  return root.find("fpgas") && !root.find("nodes");
}

bool is_device_map(JsonValue root) {
  if (root.size() == 0) return false;
  for (const auto& [name, value] : root.members()) {
    if (name == "placewright" || !(value.is_text() || value.is_integer())) return false;
  }
  return true;
}

PlanFile plan_of_map(JsonValue root, const Problem& problem, std::span<const std::string>) {
  struct Entry {
    std::string module;
    DeviceId device;
    JsonValue value;
    bool used = false;
  };
  std::vector<Entry> entries;
  for (const auto& [name, value] : root.members()) {
    entries.push_back({std::string{name}, device_of(value, problem), value});
  }
  std::ranges::stable_sort(entries, std::greater{}, [](const Entry& e) { return e.module.size(); });
  Placement placement(problem.op_count());
  for (const OpId op : problem.ops()) {
    const std::string& name = problem.op(op).name;
    const auto found =
        std::ranges::find_if(entries, [&](const Entry& e) { return is_inside(name, e.module); });
    if (found == entries.end()) {
      root.fail(fmt::format("the op '{}' is in no module of the map", name));
    }
    placement[op] = found->device;
    found->used = true;
  }
  for (const Entry& entry : entries) {
    if (!entry.used) entry.value.fail(fmt::format("no op is in the module '{}'", entry.module));
  }
  return plan_by("device map", std::move(placement));
}

bool is_split(JsonValue root) {
  return root.find("split_spec").has_value();
}

PlanFile plan_of_split_points(JsonValue root, const Problem& problem,
                              std::span<const std::string>) {
  std::vector<DeviceId> devices;
  for (const JsonValue stage : root.at("stages").elements()) {
    if (stage.is_array() && stage.size() != 1) {
      stage.fail("expected one device for each stage: replicas are not read");
    }
    devices.push_back(device_of(stage.is_array() ? *stage.elements().begin() : stage, problem));
  }
  const JsonValue spec = root.at("split_spec");
  if (spec.size() + 1 != devices.size()) {
    root.at("stages").fail(fmt::format("{} split points make {} stages, found {}", spec.size(),
                                       spec.size() + 1, devices.size()));
  }
  std::vector<std::string> begins;
  for (const auto& [module, where] : spec.members()) {
    if (where.text() != "beginning") where.fail("expected 'beginning', the only split point read");
    begins.emplace_back(module);
  }
  Placement placement(problem.op_count());
  std::size_t stage = 0;
  for (const OpId op : problem.topological_order()) {
    if (stage < begins.size() && is_inside(problem.op(op).name, begins[stage])) ++stage;
    placement[op] = devices[stage];
  }
  if (stage < begins.size()) {
    spec.at(begins[stage])
        .fail(fmt::format("no op is in the module '{}' behind the split point before it",
                          begins[stage]));
  }
  return plan_by("split points", std::move(placement));
}

constexpr std::array kFormats = {
    OtherPlanFormat{"expert split", "the key 'fpgas'", is_expert_split, plan_of_split},
    OtherPlanFormat{"split points", "the key 'split_spec'", is_split, plan_of_split_points},
    OtherPlanFormat{"device map", "names of devices for all of its keys", is_device_map,
                    plan_of_map},
};

}  // namespace

std::span<const OtherPlanFormat> other_plan_formats() {
  return kFormats;
}

const OtherPlanFormat* other_plan_format(JsonValue root) {
  if (!root.is_object()) return nullptr;
  const auto* found = std::ranges::find_if(
      kFormats, [&](const OtherPlanFormat& format) { return format.recognises(root); });
  return found == kFormats.end() ? nullptr : found;
}

}  // namespace placewright
