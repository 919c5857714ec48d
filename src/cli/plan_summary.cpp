#include "cli/plan_summary.h"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/completion_report.h"
#include "cli/device_use.h"
#include "cli/output_options.h"
#include "cli/planner_text.h"
#include "cli/record_table.h"
#include "cli/text.h"
#include "cli/uncut_comparison.h"
#include "planning/sizes.h"
#include "problem/cost_source.h"
#include "problem/time_unit.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string placement_table(const Problem& problem, const Plan& plan) {
  TextTable table({{"op"}, {"device"}});
  for (const OpId op : problem.topological_order()) {
    table.add({problem.op(op).name, problem.device(plan.placement[op]).name});
  }
  return table.text();
}

// Of a pipeline whose unit of time is known.
std::optional<double> samples_per_second(const Problem& problem, const Plan& plan) {
  const bool known = problem.objective() == Objective::throughput &&
                     problem.unit() != TimeUnit::none && plan.value > 0;
  if (!known) return std::nullopt;
  return 1000 / (plan.value * milliseconds_in(problem.unit()));
}

std::string planner_text(const PlanOutcome& outcome) {
  const std::string& found_by = outcome.answer.found_by;
  return found_by.empty() ? outcome.planner : fmt::format("{} ({})", outcome.planner, found_by);
}

std::string coarsening_text(const CoarseningSummary& coarsening) {
  return fmt::format("{}: {} of {} ops{}", name_of(coarsening.method), coarsening.ops_after,
                     coarsening.ops_before,
                     coarsening.lossless ? ", nothing lost" : ", its bounds are not used");
}

// What the plan means for each of several models.
RecordTable<ModelId> models_table(const Problem& problem, const CompletionReport& report) {
  const auto time = time_in(problem.unit());
  const auto completion = [&](ModelId id) -> const ModelCompletion& { return report.models[id]; };
  const auto deadline_text = [&, completion](ModelId id) {
    return !problem.model(id).deadline ? "-" : completion(id).late ? "late" : "met";
  };
  return RecordTable<ModelId>({
      {"name", "model", words(), [&](ModelId id) { return problem.model(id).name; }},
      {"ops", "ops", count(), [=](ModelId id) { return completion(id).ops; }},
      {"arrival", "arrival", time, [&](ModelId id) { return problem.model(id).arrival; }},
      {"weight", kNoTitle, number("{:g}"), [&](ModelId id) { return problem.model(id).weight; }},
      {"completion", "completion", time, [=](ModelId id) { return completion(id).completion; }},
      {"alone", "alone", time, [=](ModelId id) { return completion(id).alone; }},
      {"slowdown", "slow-down", number("{:.2f} x"),
       [=](ModelId id) {
         return completion(id).slowdown ? Json(*completion(id).slowdown) : Json();
       }},
      {kNoKey, "deadline", words(), deadline_text},
      {"ops_after_packing", kNoTitle, count(),
       [=](ModelId id) { return completion(id).packed_ops; }},
      {"ops_off_best_device", kNoTitle, count(),
       [=](ModelId id) { return completion(id).moved_ops; }},
  });
}

std::string idle_table(const Problem& problem, const CompletionReport& report) {
  TextTable table({{"device"}, {"idle until the end", Align::right}});
  for (const DeviceId device : problem.devices()) {
    table.add({problem.device(device).name, value_text(report.idle[device], problem.unit())});
  }
  return table.text();
}

std::string completion_text(const Problem& problem, const Plan& plan, bool verbose) {
  const CompletionReport report = completion_report(problem, plan);
  std::string text = '\n' + models_table(problem, report).text(problem.models());
  text += '\n' + idle_table(problem, report);
  if (verbose) {
    text += fmt::format(
        "\n"
        "Packing chains leaves {} of {} ops (Talos's NOD); {} are not on the device where they "
        "gain most (NRO).\n",
        report.packed_ops, problem.op_count(), report.moved_ops);
  }
  return text;
}

Json completion_json(const Problem& problem, const Plan& plan) {
  const CompletionReport report = completion_report(problem, plan);
  Json document = {{"models", models_table(problem, report).json(problem.models())},
                   {"idle", Json::object()},
                   {"ops_after_packing", report.packed_ops},
                   {"ops_off_best_device", report.moved_ops}};
  for (const ModelId id : problem.models()) {
    if (const auto deadline = problem.model(id).deadline) {
      document["models"][id.index()].update(
          {{"deadline", *deadline}, {"late", report.models[id].late}});
    }
  }
  for (const DeviceId device : problem.devices()) {
    document["idle"][problem.device(device).name] = report.idle[device];
  }
  return document;
}

std::string memory_text(const DeviceUse& use) {
  return fmt::format("{} of {}", size_text(use.memory), size_text(use.memory_limit));
}

RecordTable<DeviceUse> use_table(const Problem& problem) {
  const bool pipeline = problem.objective() == Objective::throughput;
  return RecordTable<DeviceUse>({
      {"name", "device", words(), [](const auto& use) { return use.device; }},
      {"ops", "ops", count(), [](const auto& use) { return use.ops; }},
      {kNoKey, "memory", words(), memory_text},
      {"memory", kNoTitle, size(), [](const auto& use) { return use.memory; }},
      {"memory_limit", kNoTitle, size(), [](const auto& use) { return use.memory_limit; }},
      {"busy", pipeline ? "load" : "busy", time_in(problem.unit()),
       [](const auto& use) { return use.busy; }},
      {"utilisation", "", percent(), [](const auto& use) { return use.utilisation; }},
  });
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
  const std::string caution = caution_of(cost_source(problem.draft()));
  if (!caution.empty()) line("caution", caution);
  if (const auto rate = samples_per_second(problem, plan)) {
    line("throughput", fmt::format("{:.4g} samples/s", *rate));
  }
  const bool pipeline = problem.objective() == Objective::throughput;
  line(pipeline ? "time per sample" : name_of(problem.objective()),
       value_text(plan.value, problem.unit()));
  line("lower bound", fmt::format("{} ({})", value_text(certificate.lower_bound, problem.unit()),
                                  certificate.method));
  line("gap", percent_text(gap(plan.value, certificate.lower_bound)));
  line("status", status_text(outcome.answer.status()));
  line("planner", planner_text(outcome));
  if (outcome.coarsening) line("coarsening", coarsening_text(*outcome.coarsening));
  line("time", duration_text(outcome.seconds));
  for (const std::string& note : outcome.notes) line("note", note);
  const std::string gain = uncut_sentence(problem, plan);
  if (!gain.empty()) line("against no plan", gain);
  text += '\n' + device_table(problem, plan);
  if (problem.objective() == Objective::total_completion)
    text += completion_text(problem, plan, verbose);
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
                   {"costs", name_of(cost_source(problem.draft()))},
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
  if (!outcome.notes.empty()) document["notes"] = outcome.notes;
  document["placement"] = Json::object();
  if (!answer.plan) return document;
  if (const auto rate = samples_per_second(problem, *answer.plan)) {
    document["samples_per_second"] = *rate;
  }
  // Names differ, so nothing is looked up: that would take the square of the ops.
  auto& placement = document["placement"].get_ref<Json::object_t&>();
  for (const OpId op : problem.ops()) {
    placement.emplace_back(problem.op(op).name, problem.device(answer.plan->placement[op]).name);
  }
  document["devices"] = devices_json(problem, *answer.plan);
  if (Json uncut = uncut_json(problem, *answer.plan); !uncut.is_null()) {
    document["uncut"] = std::move(uncut);
  }
  if (problem.objective() == Objective::total_completion) {
    document["completion"] = completion_json(problem, *answer.plan);
  }
  return document;
}

std::string device_table(const Problem& problem, const Plan& plan) {
  return use_table(problem).text(device_uses(problem, plan));
}

Json devices_json(const Problem& problem, const Plan& plan) {
  return use_table(problem).json(device_uses(problem, plan));
}

}  // namespace placewright::cli
