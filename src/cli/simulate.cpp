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
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "planning/sizes.h"
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
};

std::string tensor_name(const Problem& problem, TensorId id) {
  const std::string& name = problem.tensor(id).name;
  return name.empty() ? problem.op(problem.producer(id)).name : name;
}

std::string transfer_path(const Problem& problem, const Transfer& transfer) {
  const auto end = [&](DeviceId device) {
    return device.valid() ? problem.device(device).name : std::string{"host"};
  };
  return fmt::format("{} > {}", end(transfer.from), end(transfer.to));
}

std::vector<Event> events_of(const Problem& problem, const Plan& plan) {
  std::vector<Event> events;
  if (plan.schedule) {
    for (const OpId op : problem.ops()) {
      events.push_back({plan.schedule->start[op], plan.schedule->end[op], "op",
                        problem.device(plan.placement[op]).name, problem.op(op).name});
    }
    for (const Transfer& transfer : plan.schedule->transfers) {
      events.push_back({transfer.start, transfer.end, "transfer", transfer_path(problem, transfer),
                        tensor_name(problem, transfer.tensor)});
    }
  }
  for (const Call& call : plan.calls) {
    events.push_back({call.start, call.end, "call", problem.device(call.device).name,
                      fmt::format("{} ops from '{}'", call.ops.size(),
                                  call.ops.empty() ? "" : problem.op(call.ops.front()).name)});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  return events;
}

std::string stage_devices(const Problem& problem, const Stage& stage) {
  std::vector<std::string> names;
  for (const DeviceId device : stage.devices) names.push_back(problem.device(device).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string stages_table(const Problem& problem, const Plan& plan) {
  TextTable table(
      {{"stage", Align::right}, {"device"}, {"ops", Align::right}, {"load", Align::right}});
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    table.add({fmt::format("{}", i + 1), stage_devices(problem, stage),
               fmt::format("{}", stage.ops.size()), value_text(stage.load, problem.unit())});
  }
  return table.text();
}

std::string events_table(const std::vector<Event>& events) {
  TextTable table({{"start", Align::right}, {"end", Align::right}, {"device"}, {""}, {"what"}});
  for (const Event& event : events) {
    table.add({fmt::format("{:.6g}", event.start), fmt::format("{:.6g}", event.end), event.device,
               event.kind, event.what});
  }
  return table.text();
}

std::string summary_table(const Problem& problem, const Simulation& simulation) {
  TextTable table({{"device"},
                   {"ops", Align::right},
                   {"busy", Align::right},
                   {"idle", Align::right},
                   {"sending", Align::right},
                   {"receiving", Align::right},
                   {"resident", Align::right},
                   {"peak memory", Align::right},
                   {"at", Align::right}});
  const auto time = [](double value) { return fmt::format("{:.6g}", value); };
  for (const DeviceId device : problem.devices()) {
    const DeviceSummary& summary = simulation.devices[device];
    table.add({problem.device(device).name, fmt::format("{}", summary.ops), time(summary.busy),
               time(summary.idle), time(summary.sending), time(summary.receiving),
               size_text(summary.resident), size_text(summary.peak), time(summary.peak_time)});
  }
  return table.text();
}

void print_text(const SimulateOptions& options, const Problem& problem, const Plan& plan) {
  fmt::print("{}: {} {}\n\n", printable(problem.name()), name_of(problem.objective()),
             value_text(plan.value, problem.unit()));
  if (options.gantt) {
    const int width = options.width ? *options.width : terminal_width(stdout, kGanttWidth);
    fmt::print("{}\n", gantt(problem, plan, width));
  } else {
    const auto events = events_of(problem, plan);
    fmt::print("{}\n", events.empty() ? stages_table(problem, plan) : events_table(events));
  }
  fmt::print("{}\n{}", device_table(problem, plan),
             summary_table(problem, placewright::simulate(problem, plan)));
}

Json summary_json(const Problem& problem, const Simulation& simulation) {
  Json devices = Json::array();
  for (const DeviceId device : problem.devices()) {
    const DeviceSummary& summary = simulation.devices[device];
    devices.push_back({{"name", problem.device(device).name},
                       {"busy", summary.busy},
                       {"idle", summary.idle},
                       {"sending", summary.sending},
                       {"receiving", summary.receiving},
                       {"resident", summary.resident},
                       {"peak_memory", summary.peak},
                       {"peak_time", summary.peak_time}});
  }
  return devices;
}

Json stages_json(const Problem& problem, const Plan& plan) {
  Json stages = Json::array();
  for (const Stage& stage : plan.stages) {
    Json json = {{"devices", Json::array()}, {"ops", Json::array()}, {"load", stage.load}};
    for (const DeviceId device : stage.devices) {
      json["devices"].push_back(problem.device(device).name);
    }
    for (const OpId op : stage.ops) json["ops"].push_back(problem.op(op).name);
    stages.push_back(std::move(json));
  }
  return stages;
}

void print_document(const Problem& problem, const Plan& plan) {
  Json document = {{"objective", name_of(problem.objective())},
                   {"value", plan.value},
                   {"unit", name_of(problem.unit())},
                   {"events", Json::array()},
                   {"devices", devices_json(problem, plan)},
                   {"use", summary_json(problem, placewright::simulate(problem, plan))}};
  for (const Event& event : events_of(problem, plan)) {
    document["events"].push_back({{"kind", event.kind},
                                  {"start", event.start},
                                  {"end", event.end},
                                  {"device", event.device},
                                  {"what", event.what}});
  }
  if (!plan.stages.empty()) document["stages"] = stages_json(problem, plan);
  print_json(document);
}

ExitCode simulate(const SimulateOptions& options) {
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
  CLI::App* verb = program.add_subcommand("simulate", "What happens when, device by device");
  const auto options = std::make_shared<SimulateOptions>();
  options->plan.add_to(*verb);
  options->output.add_to(*verb);
  verb->add_flag("--gantt", options->gantt, "Draw the time line instead of listing it")
      ->group("Output");
  add_number(*verb, "--width", options->width, {40, 10000},
             "Columns of the picture (the terminal's, else 100)")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return simulate(*options); }; });
}

}  // namespace placewright::cli
