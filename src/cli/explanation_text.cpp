#include "cli/explanation_text.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "formats/plan_rows.h"
#include "formats/resource_text.h"
#include "planning/sizes.h"

namespace placewright::cli {
namespace {

constexpr std::size_t kShownSteps = 12;

std::string devices_text(const Problem& problem, const std::vector<DeviceId>& devices) {
  return fmt::format("{}", fmt::join(device_names(problem, devices), ", "));
}

std::string where_of(const Problem& problem, const Plan& plan, const PathStep& step) {
  if (step.kind == StepKind::op) return problem.device(plan.placement[OpId{step.index}]).name;
  if (step.kind == StepKind::call) return problem.device(plan.calls[step.index].device).name;
  const Transfer& transfer = plan.schedule->transfers[step.index];
  return fmt::format("{} > {}", place_name(problem, transfer.from),
                     place_name(problem, transfer.to));
}

// "waits 3.1 ms for cores 0-3, held by conv_12"
std::string waiting_text(const Problem& problem, const Plan& plan, const PathStep& step,
                         const PathStep& holder) {
  return fmt::format("waits {} for {}, held by {}", value_text(step.waited, problem.unit()),
                     resources_text(problem, step.resources), step_name(problem, plan, holder));
}

// Why a step of the path starts when it does.
std::string reason_text(const Problem& problem, const Plan& plan, const CriticalPath& path,
                        std::size_t number) {
  const PathStep& step = path.steps[number];
  const std::string idle = step.idle > 0 ? fmt::format(", idle {:.6g}", step.idle) : "";
  switch (step.waited_for) {
    case WaitedFor::nothing:
      return "first" + idle;
    case WaitedFor::arrival:
      return "its model arrives" + idle;
    case WaitedFor::input:
      return "its input is there" + idle;
    case WaitedFor::device:
      return "the device is free" + idle;
    case WaitedFor::resource:
      return waiting_text(problem, plan, step, path.steps[number - 1]) + idle;
    case WaitedFor::port:
      return "the port is free" + idle;
  }
  return "";
}

// The longest steps, in order of time.
std::vector<std::size_t> shown_steps(const CriticalPath& path, bool all) {
  std::vector<std::size_t> steps(path.steps.size());
  std::iota(steps.begin(), steps.end(), std::size_t{0});
  if (all || steps.size() <= kShownSteps) return steps;
  const auto length = [&](std::size_t i) { return path.steps[i].end - path.steps[i].start; };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](std::size_t a, std::size_t b) { return length(a) > length(b); });
  steps.resize(kShownSteps);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string path_text(const Problem& problem, const Plan& plan, const CriticalPath& path,
                      bool verbose) {
  const double whole = std::max(path.ops + path.transfers + path.idle, 1e-300);
  std::string text = fmt::format(
      "{}: the critical path, {} steps until {}\n"
      "  ops {} ({}), transfers {} ({}), idle {} ({})\n"
      "  {} of it only waits for a busy {}\n\n",
      coloured("limited by", Colour::bold), path.steps.size(),
      value_text(path.steps.empty() ? 0 : path.steps.back().end, problem.unit()),
      value_text(path.ops, problem.unit()), percent_text(path.ops / whole),
      value_text(path.transfers, problem.unit()), percent_text(path.transfers / whole),
      value_text(path.idle, problem.unit()), percent_text(path.idle / whole),
      percent_text(path.device_waits / whole),
      problem.resource_count() > 0 ? "device, cores or port" : "device or port");
  TextTable table({{"start", Align::right},
                   {"time", Align::right},
                   {"device"},
                   {""},
                   {"what"},
                   {"starts when"}});
  const auto shown = shown_steps(path, verbose);
  for (const std::size_t i : shown) {
    const PathStep& step = path.steps[i];
    table.add({fmt::format("{:.6g}", step.start), fmt::format("{:.6g}", step.end - step.start),
               where_of(problem, plan, step), std::string{name_of(step.kind)},
               step_name(problem, plan, step), reason_text(problem, plan, path, i)});
  }
  text += table.text(2);
  if (shown.size() < path.steps.size()) {
    text += fmt::format("  and {} shorter steps (--verbose shows all)\n",
                        path.steps.size() - shown.size());
  }
  return text;
}

std::string turns_text(const Problem& problem, const Plan& plan, const TakingTurns& turns) {
  if (turns.stages.empty()) return "";
  const std::string heading =
      fmt::format("{}: {} stages that take turns on {}, {} of a period of {}\n\n",
                  coloured("limited by", Colour::bold), turns.stages.size(),
                  printable(resources_text(problem, turns.resources)),
                  value_text(turns.time, problem.unit()), value_text(plan.value, problem.unit()));
  return heading + turn_table(problem, plan).text(turns.stages, 2) + '\n';
}

std::string stages_text(const Problem& problem, const Plan& plan,
                        const PlanExplanation& explanation) {
  std::string text = turns_text(problem, plan, explanation.turns);
  const auto& stages = explanation.stages;
  const std::string heading = text.empty() ? "limited by" : "also";
  for (const FullestStage& fullest : stages) {
    const Stage& stage = plan.stages[fullest.stage];
    text += fmt::format(
        "{}: the fullest stage{}, {} of {}, on {}\n", coloured(heading, Colour::bold),
        stages.size() < 2  ? ""
        : fullest.backward ? " of the backward pass"
                           : " of the forward pass",
        fullest.stage + 1, plan.stages.size(), printable(devices_text(problem, stage.devices)));
    text += fmt::format(
        "  load {}: compute {}, in {}, out {} ({}); {} ops\n",
        value_text(fullest.load, problem.unit()), value_text(fullest.work.compute, problem.unit()),
        value_text(fullest.work.in, problem.unit()), value_text(fullest.work.out, problem.unit()),
        name_of(problem.rules().transfers), stage.ops.size());
  }
  return text;
}

std::string cuts_text(const Problem& problem, const std::vector<Cut>& cuts) {
  if (cuts.empty()) return "No tensor leaves its device.\n";
  double total = 0;
  for (const Cut& cut : cuts) total += cut.time;
  std::string text =
      fmt::format("{}: {} in all, {}; the most costly\n\n", coloured("cuts", Colour::bold),
                  cuts.size(), value_text(total, problem.unit()));
  return text + cut_table(problem).text(shown_cuts(cuts), 2);
}

std::string planner_of(const PlanOutcome& outcome) {
  const std::string& found_by = outcome.answer.found_by;
  return found_by.empty() ? outcome.planner : fmt::format("{} ({})", outcome.planner, found_by);
}

std::string binding_text(const Problem& problem, const Sensitivity& sensitivity) {
  std::vector<std::string> binding;
  for (const MoreOf& more : sensitivity.more) {
    if (more.gain > 0) binding.push_back(text_of(problem, more.asset));
  }
  return binding.empty() ? "nothing that was tried" : fmt::format("{}", fmt::join(binding, "; "));
}

std::string sensitivity_text(const Problem& problem, const Sensitivity& sensitivity) {
  if (!sensitivity.as_it_is.answer.plan) return "";
  std::string text = fmt::format(
      "{}: {}\n"
      "  what a little more brings: planned again by '{}', {} for each plan, {} thread{}, seed "
      "{};\n"
      "  as it is: {} by {}\n\n",
      coloured("binding", Colour::bold), printable(binding_text(problem, sensitivity)),
      sensitivity.as_it_is.planner, duration_text(sensitivity.budget.seconds),
      sensitivity.budget.threads, sensitivity.budget.threads == 1 ? "" : "s",
      sensitivity.budget.seed, value_text(sensitivity.as_it_is.value(), problem.unit()),
      planner_of(sensitivity.as_it_is));
  return text + more_table(problem, sensitivity).text(sensitivity.more, 2);
}

std::string change_text(double change) {
  return fmt::format("{:+.6g}", change);
}

}  // namespace

std::string step_name(const Problem& problem, const Plan& plan, const PathStep& step) {
  switch (step.kind) {
    case StepKind::op:
      return problem.op(OpId{step.index}).name;
    case StepKind::transfer:
      return tensor_name(problem, plan.schedule->transfers[step.index].tensor);
    case StepKind::call:
      return fmt::format("{} ops from '{}'", plan.calls[step.index].ops.size(),
                         problem.op(plan.calls[step.index].ops.front()).name);
  }
  return "";
}

std::span<const Cut> shown_cuts(const std::vector<Cut>& cuts) {
  return std::span(cuts).first(std::min(kShownCuts, cuts.size()));
}

RecordTable<Cut> cut_table(const Problem& problem) {
  // Published inputs that state transfer times say nothing of sizes.
  const Style bytes{Align::right, [](const nlohmann::ordered_json& value) {
                      return value.get<double>() > 0 ? size().text(value) : "-";
                    }};
  return RecordTable<Cut>({
      {"tensor", "tensor", words(),
       [&](const auto& cut) { return tensor_name(problem, cut.tensor); }},
      {"from", "from", words(), [&](const auto& cut) { return problem.device(cut.from).name; }},
      {"to", "to", words(), [&](const auto& cut) { return device_names(problem, cut.to); }},
      {"bytes", "bytes", bytes, [&](const auto& cut) { return problem.tensor(cut.tensor).bytes; }},
      {"time", "time", time_in(problem.unit()), [](const auto& cut) { return cut.time; }},
  });
}

RecordTable<std::size_t> turn_table(const Problem& problem, const Plan& plan) {
  const Style time = time_in(problem.unit());
  return RecordTable<std::size_t>({
      {"stage", "stage", count(), [](std::size_t stage) { return stage + 1; }},
      {"devices", "device", words(),
       [&](std::size_t stage) { return device_names(problem, plan.stages[stage].devices); }},
      {"offset", "from", time,
       [&](std::size_t stage) { return plan.stages[stage].offset.value_or(0); }},
      {"load", "load", time, [&](std::size_t stage) { return plan.stages[stage].load; }},
  });
}

RecordTable<MoreOf> more_table(const Problem& problem, const Sensitivity& sensitivity) {
  const Style time = time_in(problem.unit());
  const double whole = std::max(sensitivity.as_it_is.value(), 1e-300);
  return RecordTable<MoreOf>({
      {"kind", kNoTitle, words(), [](const auto& more) { return name_of(more.asset.kind); }},
      {"of", "of what", words(), [&](const auto& more) { return text_of(problem, more.asset); }},
      {"unit", "more", words(), [](const auto& more) { return more.unit; }},
      {"value", "value", time, [](const auto& more) { return more.value; }},
      {"gain", "gain", time, [](const auto& more) { return more.gain; }},
      {kNoKey, "", percent(), [whole](const auto& more) { return more.gain / whole; }},
      {kNoKey, "planner", words(), [](const auto& more) { return planner_of(more.outcome); }},
  });
}

std::string plan_text(const Problem& problem, const Plan& plan, const PlanExplanation& explanation,
                      bool verbose) {
  std::string text =
      fmt::format("{}: {} {}\n\n", printable(problem.name()), name_of(problem.objective()),
                  value_text(plan.value, problem.unit()));
  text += explanation.stages.empty() ? path_text(problem, plan, explanation.path, verbose)
                                     : stages_text(problem, plan, explanation);
  return text + '\n' + cuts_text(problem, explanation.cuts) + '\n' +
         sensitivity_text(problem, explanation.sensitivity);
}

std::string op_text(const Problem& problem, const Plan& plan, const OpExplanation& explanation) {
  const OpId op = explanation.op;
  const DeviceId home = plan.placement[op];
  std::string text = fmt::format(
      "op '{}' on {}: time {}, {} resident\n\n", printable(problem.op(op).name),
      printable(problem.device(home).name), value_text(problem.time(op, home), problem.unit()),
      size_text(problem.memory(op)));
  TextTable table({{"on"},
                   {std::string{name_of(problem.objective())}, Align::right},
                   {"change", Align::right},
                   {"op time", Align::right},
                   {"transfers", Align::right},
                   {"allowed"}});
  table.add(
      {problem.device(home).name, value_text(plan.value, problem.unit()), "", "", "", "here"});
  for (const OpMove& move : explanation.moves) {
    const bool known = move.plan.has_value();
    table.add(
        {problem.device(move.device).name, value_text(move.value(), problem.unit()),
         known ? change_text(move.value() - plan.value) : "-",
         known ? change_text(move.compute_change) : "-",
         known ? change_text(move.transfer_change) : "-",
         move.obstacle == Obstacle::none ? "yes" : fmt::format("no: {}", name_of(move.obstacle))});
  }
  text += table.text(2) + '\n';
  if (explanation.holds.empty()) return text + "Nothing holds it where it is.\n";
  text += "What holds it:\n";
  for (const std::string& hold : explanation.holds) {
    text += fmt::format("  {}\n", printable(hold));
  }
  return text;
}

std::string problem_text(const Problem& problem, const ProblemExplanation& explanation) {
  const Conflict& conflict = explanation.conflict;
  if (conflict.verdict == Verdict::feasible) {
    return fmt::format("{}: feasible; 'placewright plan' makes a plan\n",
                       printable(problem.name()));
  }
  if (conflict.verdict == Verdict::unknown) {
    return fmt::format(
        "{}: the planner found no plan in this time, and no proof that there is none\n",
        printable(problem.name()));
  }
  std::string text = fmt::format(
      "{}: {}\n"
      "\n"
      "These constraints cannot all hold{}:\n",
      printable(problem.name()), coloured("infeasible", Colour::red),
      conflict.minimal ? "; without any one of them the others can hold"
                       : " (perhaps fewer of them already contradict each other; the time was up)");
  for (const Constraint& constraint : conflict.members) {
    text += fmt::format("  {:<13} {}\n", name_of(constraint.kind),
                        printable(text_of(problem, constraint)));
  }
  text += '\n';
  if (!explanation.memory) return text + "More memory alone does not help.\n";
  const LeastMemory& memory = *explanation.memory;
  text += fmt::format(
      "Least memory that is enough, if all memories grow by one factor: x {:.6g}\n"
      "  (a plan shows that this is enough; x {:.6g} is proved too little)\n"
      "\n",
      memory.factor, memory.not_enough);
  TextTable table({{problem.has_shared_spaces() ? "memory space" : "device"},
                   {"memory", Align::right},
                   {"needed", Align::right}});
  for (const SpaceNeed& space : memory.spaces) {
    table.add({space.name, size_text(space.memory), size_text(space.needed)});
  }
  return text + table.text(2);
}

}  // namespace placewright::cli
