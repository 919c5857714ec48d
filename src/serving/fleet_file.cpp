#include "serving/fleet_file.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "problem/time_unit.h"
#include "serving/stated_models.h"

namespace placewright {

struct BytesForm {};
struct TimesForm {};

template <>
inline constexpr auto kFields<FleetNode> =
    std::tuple{required("name", &FleetNode::name), optional("kind", &FleetNode::kind),
               optional("speed", &FleetNode::speed),
               optional("memory", &FleetNode::memory, BytesForm{}).or_null(),
               optional("cores", &FleetNode::cores)};

template <>
inline constexpr auto kFields<FleetModel> =
    std::tuple{required("name", &FleetModel::name),
               optional("path", &FleetModel::path),
               required("rate", &FleetModel::rate),
               required("memory", &FleetModel::memory),
               optional("objective", &FleetModel::objective).or_null(),
               required("times", &FleetModel::times, TimesForm{})};

template <>
inline constexpr auto kFields<FleetReplica> = std::tuple{
    required("model", &FleetReplica::model), required("node", &FleetReplica::node),
    required("rate", &FleetReplica::rate),   required("mean", &FleetReplica::mean),
    required("p99", &FleetReplica::p99),     stated("in_time", &FleetReplica::in_time).or_null()};

namespace {

constexpr auto kNodesFields = std::tuple{required("nodes", &NodesFile::nodes)};
constexpr auto kDemandFields =
    std::tuple{required("most_load", &FleetDemand::most_load).on_line(),
               required("nodes", &FleetDemand::nodes).on_line().in(Lines::bracket_below),
               required("models", &FleetDemand::models).on_line().in(Lines::bracket_below)};
constexpr auto kPlanFields = std::tuple{
    required("replicas", &FleetPlan::replicas).on_line().in(Lines::bracket_below),
    required("loads", &FleetPlan::loads).on_line(), required("load", &FleetPlan::load).on_line(),
    required("lower_bound", &FleetPlan::lower_bound)};

struct FleetReading {
  UnknownKeys unknown = {};
  std::size_t nodes = 0;

  static void read(BytesForm /*form*/, JsonValue json, FleetNode& node) {
    node.memory = amount_in(json, TimeUnit::none, Dimension::bytes);
  }
  void read(JsonValue json, FleetNode& node) {
    read_record(json, node, *this);
    if (node.speed <= 0) json.at("speed").fail("expected a number above 0");
  }
  void read(TimesForm /*form*/, JsonValue json, FleetModel& model) const {
    for (const JsonValue time : json.elements()) {
      model.times.push_back(time.is_null() ? std::numeric_limits<double>::infinity()
                                           : time.amount());
    }
    if (model.times.size() != nodes) {
      json.fail(fmt::format("expected a time for each of the {} nodes, found {}", nodes,
                            model.times.size()));
    }
  }
};

struct FleetWriting {
  static void append(BytesForm /*form*/, std::string& text, const FleetNode& node) {
    append_number(text, node.memory);
  }
  static void append(TimesForm /*form*/, std::string& text, const FleetModel& model) {
    append_value(text, model.times, WritingContext{});
  }
};

void check_names(JsonValue list) {
  std::set<std::string_view> names;
  for (const JsonValue each : list.elements()) {
    const std::string_view name = each.at("name").text();
    if (!names.insert(name).second) {
      each.at("name").fail(fmt::format("'{}' is there twice", name));
    }
  }
  if (names.empty()) list.fail("the list is empty");
}

}  // namespace

NodesFile parse_nodes(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const JsonValue root = document.root();
  NodesFile file;
  FleetReading context;
  read_file<kNodesFields>(root, "nodes", file, context);
  check_names(root.at("nodes"));
  file.warnings = context.unknown.warnings();
  return file;
}

bool is_fleet(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const JsonValue root = document.root();
  if (!root.is_object()) return false;
  const auto kind = root.find("placewright");
  return kind && kind->is_text() && kind->text() == "fleet";
}

FleetDemand parse_fleet(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const JsonValue root = document.root();
  check_header(root, "fleet");
  FleetDemand demand;
  FleetReading context;
  context.nodes = root.at("nodes").elements().size();
  read_fields(root, demand, kDemandFields, context);
  check_names(root.at("nodes"));
  check_names(root.at("models"));
  return demand;
}

std::string fleet_text(const FleetPlan& plan) {
  std::string text = begun_file("fleet");
  append_fields(text, plan.demand, kDemandFields, FleetWriting{});
  append_fields(text, plan, kPlanFields, FleetWriting{});
  return text + "\n}\n";
}

std::vector<FleetModel> fleet_models(const Problem& problem, const std::vector<FleetNode>& nodes) {
  if (problem.unit() == TimeUnit::none) {
    throw std::invalid_argument("the times of this problem have no unit");
  }
  const double scale = milliseconds_in(problem.unit());
  std::vector<FleetModel> models;
  for (const ModelId id : problem.models()) {
    FleetModel& model = models.emplace_back();
    model.name = problem.model(id).name;
    if (problem.model(id).source) model.path = problem.model(id).source->path;
    for (const OpId op : problem.ops()) {
      if (problem.op(op).model == id) model.memory += problem.op(op).memory;
    }
    for (const FleetNode& node : nodes) {
      double least = std::numeric_limits<double>::infinity();
      bool known = node.kind.empty();
      for (const DeviceId device : problem.devices()) {
        const std::string& kind =
            problem.draft().cluster.kinds[problem.kind_of(device).index()].name;
        const bool meant = node.kind == kind || node.kind == problem.device(device).name;
        if (!node.kind.empty() && !meant) continue;
        known = true;
        least = std::min(least, time_on(problem, id, device) * scale / node.speed);
      }
      if (!known) {
        throw std::invalid_argument(fmt::format(
            "the node '{}' has the kind '{}', which no device has", node.name, node.kind));
      }
      model.times.push_back(least);
    }
  }
  return models;
}

}  // namespace placewright
