#include "serving/fleet.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/record_table.h"
#include "cli/repeated_option.h"
#include "cli/serve_options.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "serving/fleet_file.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright fleet squeezenet.json resnet50.json --nodes nodes.json \\\n"
    "      --rate squeezenet=60 --rate resnet50=30 --objective 50ms -o fleet.json\n"
    "  placewright fleet fleet.json --without node2    plan again when a node is gone";

struct FleetVerb {
  std::vector<std::string> models;
  std::string nodes;
  std::vector<std::string> rates;
  std::vector<std::string> objectives;
  std::vector<std::string> without;
  std::optional<double> most_load;
  std::string time_limit = "10s";
  std::string path;
  OutputOptions output;
};

// The models that an option names, with the value for them.
void set_each(FleetDemand& demand, std::string_view option, const std::vector<std::string>& texts,
              const auto& set) {
  for (const std::string& text : texts) {
    const auto [name, value] = model_value(text);
    bool known = name.empty();
    for (FleetModel& model : demand.models) {
      if (!name.empty() && model.name != name) continue;
      set(model, value);
      known = true;
    }
    if (!known) throw UsageError(fmt::format("{}: no model is called '{}'", option, name));
  }
}

// Beside the problem file, as the problem says it.
void resolve_paths(std::vector<FleetModel>& models, const std::string& problem) {
  for (FleetModel& model : models) {
    if (model.path.empty() || std::filesystem::path(model.path).is_absolute()) continue;
    const auto folder = std::filesystem::path(problem).parent_path();
    model.path = std::filesystem::absolute(folder / model.path).lexically_normal().string();
  }
}

FleetDemand demand_of_files(const FleetVerb& verb) {
  if (verb.nodes.empty()) throw UsageError("--nodes: name the file of the fleet's nodes");
  NodesFile nodes = parse_nodes(read_whole(verb.nodes), input_name(verb.nodes));
  verb.output.warn(nodes.warnings);
  FleetDemand demand{.nodes = std::move(nodes.nodes)};
  try {
    for (const std::string& path : verb.models) {
      auto models = fleet_models(read_catalogue({path}, "", verb.output), demand.nodes);
      resolve_paths(models, path);
      std::ranges::move(models, std::back_inserter(demand.models));
    }
  } catch (const std::invalid_argument& error) {
    throw InputError(verb.nodes, "", error.what());
  }
  for (std::size_t i = 0; i < demand.models.size(); ++i) {
    if (std::ranges::count(demand.models, demand.models[i].name, &FleetModel::name) > 1) {
      throw UsageError(fmt::format("two models are called '{}'", demand.models[i].name));
    }
  }
  return demand;
}

FleetDemand demand_of(const FleetVerb& verb) {
  const std::string text = read_whole(verb.models.front());
  const std::string name = input_name(verb.models.front());
  if (!is_fleet(text, name)) return demand_of_files(verb);
  if (verb.models.size() > 1 || !verb.nodes.empty()) {
    throw UsageError("a fleet file names its models and nodes itself: leave the others out");
  }
  return parse_fleet(text, name);
}

void leave_out(FleetDemand& demand, const std::vector<std::string>& nodes) {
  for (const std::string& name : nodes) {
    const auto found = std::ranges::find(demand.nodes, name, &FleetNode::name);
    if (found == demand.nodes.end()) {
      throw UsageError(fmt::format("--without: no node is called '{}'", name));
    }
    const auto index = found - demand.nodes.begin();
    demand.nodes.erase(found);
    for (FleetModel& model : demand.models) model.times.erase(model.times.begin() + index);
  }
  if (demand.nodes.empty()) throw UsageError("--without: no node is left");
}

FleetDemand wanted_fleet(const FleetVerb& verb) {
  FleetDemand demand = demand_of(verb);
  leave_out(demand, verb.without);
  if (verb.most_load) demand.most_load = *verb.most_load;
  set_each(demand, "--rate", verb.rates, [](FleetModel& model, const std::string& value) {
    model.rate = parse_number("--rate", value, NumberRange<double>{1e-6, 1e9});
  });
  set_each(demand, "--objective", verb.objectives, [](FleetModel& model, const std::string& value) {
    model.objective = 1000 * parse_duration("--objective", value);
  });
  for (const FleetModel& model : demand.models) {
    if (model.rate <= 0) {
      throw UsageError(fmt::format("--rate: state the requests a second of '{}'", model.name));
    }
  }
  return demand;
}

RecordTable<FleetReplica> replica_table(bool objectives) {
  const Style time = time_in(TimeUnit::milliseconds);
  const auto shown = objectives ? std::optional<std::string>("in time") : std::nullopt;
  return RecordTable<FleetReplica>({
      {"node", "node", words(), [](const auto& each) { return each.node; }},
      {"model", "model", words(), [](const auto& each) { return each.model; }},
      {"rate", "requests/s", number("{:.4g}"), [](const auto& each) { return each.rate; }},
      {"mean", "mean", time, [](const auto& each) { return each.mean; }},
      {"p99", "p99", time, [](const auto& each) { return each.p99; }},
      {"in_time", shown, percent(),
       [](const auto& each) { return each.in_time ? Json(*each.in_time) : Json(); }},
  });
}

RecordTable<std::size_t> node_table(const FleetPlan& plan) {
  const auto memory = [&plan](std::size_t node) {
    double sum = 0;
    for (const FleetReplica& replica : plan.replicas) {
      if (replica.node != plan.demand.nodes[node].name) continue;
      sum += std::ranges::find(plan.demand.models, replica.model, &FleetModel::name)->memory;
    }
    return sum;
  };
  return RecordTable<std::size_t>({
      {"name", "node", words(), [&](std::size_t node) { return plan.demand.nodes[node].name; }},
      {"load", "load", percent(), [&](std::size_t node) { return plan.loads[node]; }},
      {"memory", "memory", size(), memory},
      {"of", "of", size(), [&](std::size_t node) { return plan.demand.nodes[node].memory; }},
  });
}

void print_plan(const FleetPlan& plan, const OutputOptions& output) {
  const bool objectives = std::ranges::any_of(
      plan.demand.models, [](const FleetModel& model) { return model.objective.has_value(); });
  std::vector<std::size_t> nodes(plan.loads.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) nodes[node] = node;
  const double gap = plan.load > 0 ? 1 - plan.lower_bound / plan.load : 0;
  if (output.json) {
    print_json({{"load", plan.load},
                {"lower_bound", plan.lower_bound},
                {"obstacle", plan.obstacle.empty() ? Json() : Json(plan.obstacle)},
                {"replicas", replica_table(objectives).json(plan.replicas)},
                {"nodes", node_table(plan).json(nodes)}});
    return;
  }
  if (plan.has_replicas() && !output.quiet) {
    fmt::print("{}\n{}\nlargest load {}, lower bound {}, gap {}\n",
               replica_table(objectives).text(plan.replicas), node_table(plan).text(nodes),
               percent_text(plan.load), percent_text(plan.lower_bound), percent_text(gap));
  }
  if (!plan.obstacle.empty() && !output.quiet) fmt::print("no: {}\n", printable(plan.obstacle));
}

ExitCode fleet(const FleetVerb& verb) {
  const double seconds = parse_duration("--time-limit", verb.time_limit);
  const FleetPlan plan = plan_fleet(wanted_fleet(verb), {.time_seconds = seconds});
  print_plan(plan, verb.output);
  if (!plan.has_replicas()) return ExitCode::no;
  if (!verb.path.empty()) write_whole(verb.path, fleet_text(plan));
  return plan.obstacle.empty() ? ExitCode::success : ExitCode::no;
}

}  // namespace

void add_fleet(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("fleet", "Which models run on which nodes of a fleet");
  const auto options = std::make_shared<FleetVerb>();
  verb->add_option("models", options->models,
                   "Problem files that state the models' times, or a fleet file to plan again")
      ->type_name("FILE")
      ->required();
  verb->add_option("--nodes", options->nodes, "The nodes, with their memory and kinds")
      ->type_name("FILE");
  add_repeated(*verb, "--rate", options->rates, "[MODEL=]N", "So many requests a second");
  add_repeated(*verb, "--objective", options->objectives, "[MODEL=]TIME",
               "Latency that 99 % of the requests must meet: '30ms'");
  add_number(*verb, "--most-load", options->most_load, {0.01, 1},
             "Largest load of a node (0.9, or that of the fleet file)");
  add_repeated(*verb, "--without", options->without, "NODE", "Leave out this node");
  add_duration(*verb, "--time-limit", options->time_limit, "Limit for each of the programs solved");
  add_written(*verb, "-o,--output", options->path, "Write the plan; - is standard output");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return fleet(*options); }; });
}

}  // namespace placewright::cli
