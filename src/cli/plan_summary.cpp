#include "cli/plan_summary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/device_use.h"
#include "cli/output_options.h"
#include "cli/planner_text.h"
#include "cli/table.h"
#include "cli/text.h"
#include "planning/sizes.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string memory_cell(const DeviceUse& use) {
  return fmt::format("{} of {}", size_text(use.memory), size_text(use.memory_limit));
}

std::string placement_table(const Problem& problem, const Plan& plan) {
  TextTable table({{"op"}, {"device"}});
  for (const OpId op : problem.topological_order()) {
    table.add({problem.op(op).name, problem.device(plan.placement[op]).name});
  }
  return table.text();
}

std::string planner_text(const PlanOutcome& outcome) {
  const std::string& found_by = outcome.answer.found_by;
  return found_by.empty() ? outcome.planner : fmt::format("{} ({})", outcome.planner, found_by);
}

std::string coarsening_text(const CoarseningSummary& coarsening) {
  return fmt::format("{}: {} of {} ops{}", name_of(coarsening.method), coarsening.ops_after,
                     coarsening.ops_before,
                     coarsening.lossless ? ", nothing lost" : ", its bounds do not count");
}

Json settings_json(const Settings& settings) {
  Json json = Json::object();
  for (const Option& option : settings.options()) {
    json[option.name] = option_value_json(settings.value(option.name));
  }
  return json;
}

}  // namespace

std::string outcome_text(const Problem& problem, const PlanOutcome& outcome, bool verbose) {
  const Plan& plan = *outcome.answer.plan;
  const Certificate& certificate = outcome.answer.certificate;
  std::string text = printable(problem.name()) + '\n';
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<16}  {}\n", name, value);
  };
  line(name_of(problem.objective()), value_text(plan.value, problem.unit()));
  line("lower bound", fmt::format("{} ({})", value_text(certificate.lower_bound, problem.unit()),
                                  certificate.method));
  line("gap", percent_text(gap(plan.value, certificate.lower_bound)));
  line("status", status_text(outcome.answer.status()));
  line("planner", planner_text(outcome));
  if (outcome.coarsening) line("coarsening", coarsening_text(*outcome.coarsening));
  line("time", duration_text(outcome.seconds));
  text += '\n' + device_table(problem, plan);
  if (verbose) text += '\n' + placement_table(problem, plan);
  return text;
}

std::string no_plan_text(const PlanOutcome& outcome) {
  if (!outcome.fault.empty()) return fmt::format("error: {}", outcome.answer.reason);
  return fmt::format("{}: {}", name_of(outcome.answer.status()), outcome.answer.reason);
}

Json outcome_json(const Problem& problem, const PlanOutcome& outcome) {
  const Answer& answer = outcome.answer;
  Json document = {{"status", name_of(answer.status())},
                   {"objective", name_of(problem.objective())},
                   {"planner", outcome.planner},
                   {"value", finite_or_null(answer.value())},
                   {"lower_bound", answer.certificate.lower_bound},
                   {"bound_method", answer.certificate.method},
                   {"gap", finite_or_null(gap(answer.value(), answer.certificate.lower_bound))},
                   {"unit", name_of(problem.unit())},
                   {"seconds", outcome.seconds},
                   {"settings", settings_json(outcome.settings)}};
  if (outcome.coarsening) {
    document["coarsening"] = {{"method", name_of(outcome.coarsening->method)},
                              {"ops_before", outcome.coarsening->ops_before},
                              {"ops_after", outcome.coarsening->ops_after},
                              {"lossless", outcome.coarsening->lossless}};
  }
  if (!answer.found_by.empty()) document["found_by"] = answer.found_by;
  if (!answer.plan) document["reason"] = answer.reason;
  document["placement"] = Json::object();
  if (!answer.plan) return document;
  for (const OpId op : problem.ops()) {
    document["placement"][problem.op(op).name] = problem.device(answer.plan->placement[op]).name;
  }
  document["devices"] = devices_json(problem, *answer.plan);
  return document;
}

std::string device_table(const Problem& problem, const Plan& plan) {
  const bool pipeline = problem.objective() == Objective::throughput;
  TextTable table({{"device"},
                   {"ops", Align::right},
                   {"memory"},
                   {pipeline ? "load" : "busy", Align::right},
                   {"", Align::right}});
  const auto uses = device_uses(problem, plan);
  for (const DeviceId device : problem.devices()) {
    const DeviceUse& use = uses[device];
    table.add({problem.device(device).name, fmt::format("{}", use.ops), memory_cell(use),
               value_text(use.busy, problem.unit()), percent_text(use.utilisation)});
  }
  return table.text();
}

Json devices_json(const Problem& problem, const Plan& plan) {
  Json devices = Json::array();
  const auto uses = device_uses(problem, plan);
  for (const DeviceId device : problem.devices()) {
    const DeviceUse& use = uses[device];
    devices.push_back({{"name", problem.device(device).name},
                       {"ops", use.ops},
                       {"memory", use.memory},
                       {"memory_limit", finite_or_null(use.memory_limit)},
                       {"busy", use.busy},
                       {"utilisation", use.utilisation}});
  }
  return devices;
}

}  // namespace placewright::cli
