#include "evaluate/simulate.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/gantt.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/plan_summary.h"
#include "cli/record_table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "evaluate/resource_load.h"
#include "formats/plan_rows.h"
#include "formats/resource_text.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright simulate plan.json             what happens when\n"
    "  placewright simulate plan.json --gantt     as a picture\n"
    "  placewright simulate plan.json --json";

constexpr int kGanttWidth = 100;

struct SimulateOptions {
  PlanOptions plan;
  OutputOptions output;
  bool gantt = false;
  std::optional<int> width;
};

// One thing that happens: an op, a transfer, a call.
struct Event {
  double start;
  double end;
  std::string kind;
  std::string device;
  std::string what;
  std::vector<ResourceUse> held;
};

// For how long it runs; what takes no time holds nothing.
std::vector<ResourceUse> held_during(const Problem& problem, std::span<const DeviceId> devices,
                                     std::span<const OpId> ops, double time) {
  if (time <= 0) return {};
  std::vector<ResourceUse> held = held_by(problem, devices, ops);
  std::ranges::sort(held, {}, &ResourceUse::resource);
  return held;
}

std::vector<Event> events_of(const Problem& problem, const Plan& plan) {
  std::vector<Event> events;
  if (plan.schedule) {
    for (const OpId op : problem.ops()) {
      const double start = plan.schedule->start[op];
      const double end = plan.schedule->end[op];
      const DeviceId device = plan.placement[op];
      events.push_back({start, end, "op", problem.device(device).name, problem.op(op).name,
                        held_during(problem, {&device, 1}, {&op, 1}, end - start)});
    }
    for (const Transfer& transfer : plan.schedule->transfers) {
      events.push_back({transfer.start,
                        transfer.end,
                        "transfer",
                        fmt::format("{} > {}", place_name(problem, transfer.from),
                                    place_name(problem, transfer.to)),
                        tensor_name(problem, transfer.tensor),
                        {}});
    }
  }
  for (const Call& call : plan.calls) {
    events.push_back({call.start, call.end, "call", problem.device(call.device).name,
                      fmt::format("{} ops from '{}'", call.ops.size(),
                                  call.ops.empty() ? "" : problem.op(call.ops.front()).name),
                      held_during(problem, {&call.device, 1}, call.ops, call.end - call.start)});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  return events;
}

Json op_names(const Problem& problem, const Stage& stage) {
  Json names = Json::array();
  for (const OpId op : stage.ops) names.push_back(problem.op(op).name);
  return names;
}

// What a record holds of the resources that devices share, given by `held`.
template <class Record, class Held>
void add_held(const Problem& problem, const Held& held, std::vector<Field<Record>>& fields) {
  fields.push_back({"resources", kNoTitle, words(), [&problem, held](const Record& record) {
                      std::vector<ResourceId> resources;
                      for (const ResourceUse& use : held(record)) resources.push_back(use.resource);
                      return resource_names(problem, resources);
                    }});
  fields.push_back({"amounts", kNoTitle, words(), [held](const Record& record) {
                      std::vector<double> amounts;
                      for (const ResourceUse& use : held(record)) amounts.push_back(use.amount);
                      return amounts;
                    }});
  fields.push_back({kNoKey, "holds", words(), [&problem, held](const Record& record) {
                      return held_text(problem, held(record));
                    }});
}

// What is known of stages that share resources: when they hold which.
void add_turns(const Problem& problem, const Plan& plan, std::vector<Field<Stage>>& fields) {
  const auto offset = [](std::optional<double> Stage::*member) {
    return [member](const Stage& stage) { return (stage.*member).value_or(0); };
  };
  const auto has = [&](std::optional<double> Stage::*member) {
    return std::ranges::all_of(plan.stages,
                               [=](const Stage& s) { return (s.*member).has_value(); });
  };
  if (!has(&Stage::offset)) return;
  const Style time = time_in(problem.unit());
  fields.push_back({"offset", "from", time, offset(&Stage::offset)});
  if (has(&Stage::backward_offset)) {
    fields.push_back({"backward_offset", "backward from", time, offset(&Stage::backward_offset)});
  }
  const auto held = [&](const Stage& stage) {
    return held_during(problem, stage.devices, stage.ops, stage.load);
  };
  add_held<Stage>(problem, held, fields);
}

RecordTable<Stage> stage_table(const Problem& problem, const Plan& plan) {
  std::vector<Field<Stage>> fields = {
      {kNoKey, "stage", count(),
       [&](const auto& stage) { return &stage - plan.stages.data() + 1; }},
      {"devices", "device", words(),
       [&](const auto& s) { return device_names(problem, s.devices); }},
      {"ops", kNoTitle, words(), [&](const auto& stage) { return op_names(problem, stage); }},
      {kNoKey, "ops", count(), [](const auto& stage) { return stage.ops.size(); }},
      {"load", "load", time_in(problem.unit()), [](const auto& stage) { return stage.load; }},
  };
  add_turns(problem, plan, fields);
  return RecordTable<Stage>(std::move(fields));
}

RecordTable<Event> event_table(const Problem& problem) {
  const Style time = number("{:.6g}");
  std::vector<Field<Event>> fields = {
      {"start", "start", time, [](const auto& event) { return event.start; }},
      {"end", "end", time, [](const auto& event) { return event.end; }},
      {"device", "device", words(), [](const auto& event) { return event.device; }},
      {"kind", "", words(), [](const auto& event) { return event.kind; }},
      {"what", "what", words(), [](const auto& event) { return event.what; }},
  };
  if (problem.resource_count() > 0) {
    add_held<Event>(
        problem, [](const Event& event) { return event.held; }, fields);
  }
  return RecordTable<Event>(std::move(fields));
}

RecordTable<DeviceId> summary_table(const Problem& problem, const Simulation& simulation) {
  const Style time = number("{:.6g}");
  const auto of = [&](auto DeviceSummary::*member) {
    return [&, member](DeviceId device) { return simulation.devices[device].*member; };
  };
  return RecordTable<DeviceId>({
      {"name", "device", words(), [&](DeviceId device) { return problem.device(device).name; }},
      {kNoKey, "ops", count(), of(&DeviceSummary::ops)},
      {"busy", "busy", time, of(&DeviceSummary::busy)},
      {"idle", "idle", time, of(&DeviceSummary::idle)},
      {"sending", "sending", time, of(&DeviceSummary::sending)},
      {"receiving", "receiving", time, of(&DeviceSummary::receiving)},
      {"resident", "resident", size(), of(&DeviceSummary::resident)},
      {"peak_memory", "peak memory", size(), of(&DeviceSummary::peak)},
      {"peak_time", "at", time, of(&DeviceSummary::peak_time)},
  });
}

// How much of its time each resource is held: a device may be idle while another has its cores.
RecordTable<ResourceId> resource_table(const Problem& problem, const Plan& plan) {
  const double whole = placewright::simulate(problem, plan).end;
  const Table<ResourceId, double> loads = resource_loads(problem, plan);
  const auto load = [loads](ResourceId resource) { return loads[resource]; };
  return RecordTable<ResourceId>({
      {"name", "resource", words(), [&](ResourceId id) { return problem.resource(id).name; }},
      {"capacity", kNoTitle, number("{:.6g}"),
       [&](ResourceId id) { return problem.resource(id).capacity; }},
      {"load", "load", time_in(problem.unit()), load},
      {"utilisation", "", percent(),
       [=](ResourceId id) { return whole > 0 ? load(id) / whole : 0.0; }},
  });
}

void print_text(const SimulateOptions& options, const Problem& problem, const Plan& plan) {
  fmt::print("{}: {} {}\n\n", printable(problem.name()), name_of(problem.objective()),
             value_text(plan.value, problem.unit()));
  if (options.gantt) {
    const int width = options.width ? *options.width : terminal_width(stdout, kGanttWidth);
    fmt::print("{}\n", gantt(problem, plan, width));
  } else {
    const auto events = events_of(problem, plan);
    fmt::print("{}\n", events.empty() ? stage_table(problem, plan).text(plan.stages)
                                      : event_table(problem).text(events));
  }
  const Simulation simulation = placewright::simulate(problem, plan);
  fmt::print("{}\n{}", device_table(problem, plan),
             summary_table(problem, simulation).text(problem.devices()));
  if (problem.resource_count() == 0) return;
  fmt::print("\n{}", resource_table(problem, plan).text(problem.resources()));
}

void print_document(const Problem& problem, const Plan& plan) {
  const Simulation simulation = placewright::simulate(problem, plan);
  Json document = {{"objective", name_of(problem.objective())},
                   {"value", plan.value},
                   {"unit", name_of(problem.unit())},
                   {"events", event_table(problem).json(events_of(problem, plan))},
                   {"devices", devices_json(problem, plan)},
                   {"use", summary_table(problem, simulation).json(problem.devices())}};
  if (problem.resource_count() > 0) {
    document["resources"] = resource_table(problem, plan).json(problem.resources());
  }
  if (!plan.stages.empty()) document["stages"] = stage_table(problem, plan).json(plan.stages);
  print_json(document);
}

ExitCode simulate(const CLI::App& verb, const SimulateOptions& options) {
  options.plan.problem.check();
  if (const auto done = simulate_training(verb, options.plan.path, options.output)) return *done;
  const OpenedPlan loaded = options.plan.read(options.output);
  if (!is_valid(loaded)) return ExitCode::no;
  if (options.output.json) {
    print_document(loaded.problem, loaded.plan());
  } else if (!options.output.quiet) {
    print_text(options, loaded.problem, loaded.plan());
  }
  return ExitCode::success;
}

}  // namespace

void add_simulate(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("simulate", "Show what happens when, device by device");
  const auto options = std::make_shared<SimulateOptions>();
  options->plan.add_to(*verb);
  options->output.add_to(*verb);
  verb->add_flag("--gantt", options->gantt, "Draw the time line instead of listing it")
      ->group("Output");
  add_number(*verb, "--width", options->width, {40, 10000},
             "Columns of the picture; default: those of the terminal, else 100")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback(
      [&action, verb, options] { action = [verb, options] { return simulate(*verb, *options); }; });
}

}  // namespace placewright::cli
