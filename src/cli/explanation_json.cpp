#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/explanation_text.h"
#include "cli/output_options.h"
#include "formats/plan_rows.h"
#include "formats/resource_text.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

Json step_json(const Problem& problem, const Plan& plan, const CriticalPath& path,
               std::size_t number) {
  const PathStep& step = path.steps[number];
  Json json = {{"kind", name_of(step.kind)}};
  if (step.kind == StepKind::op) {
    json["op"] = problem.op(OpId{step.index}).name;
    json["device"] = problem.device(plan.placement[OpId{step.index}]).name;
  } else if (step.kind == StepKind::transfer) {
    const Transfer& transfer = plan.schedule->transfers[step.index];
    json["tensor"] = tensor_name(problem, transfer.tensor);
    json["from"] = place_name(problem, transfer.from);
    json["to"] = place_name(problem, transfer.to);
  } else {
    json["device"] = problem.device(plan.calls[step.index].device).name;
    json["ops"] = plan.calls[step.index].ops.size();
  }
  json.update({{"start", step.start},
               {"end", step.end},
               {"waited_for", name_of(step.waited_for)},
               {"idle", step.idle},
               {"waited", step.waited}});
  if (step.waited_for == WaitedFor::resource) {
    json["resources"] = resource_names(problem, step.resources);
    json["held_by"] = step_name(problem, plan, path.steps[number - 1]);
  }
  return json;
}

Json path_json(const Problem& problem, const Plan& plan, const CriticalPath& path) {
  Json json = {{"ops", path.ops},
               {"transfers", path.transfers},
               {"idle", path.idle},
               {"device_waits", path.device_waits},
               {"steps", Json::array()}};
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    json["steps"].push_back(step_json(problem, plan, path, i));
  }
  return json;
}

Json stage_json(const Problem& problem, const Plan& plan, const FullestStage& fullest) {
  return {{"stage", fullest.stage + 1},
          {"devices", device_names(problem, plan.stages[fullest.stage].devices)},
          {"pass", fullest.backward ? "backward" : "forward"},
          {"load", fullest.load},
          {"compute", fullest.work.compute},
          {"in", fullest.work.in},
          {"out", fullest.work.out}};
}

Json turns_json(const Problem& problem, const Plan& plan, const TakingTurns& turns) {
  return {{"resources", resource_names(problem, turns.resources)},
          {"time", turns.time},
          {"stages", turn_table(problem, plan).json(turns.stages)}};
}

Json outcome_brief(const PlanOutcome& outcome) {
  return {{"value", finite_or_null(outcome.value())},
          {"lower_bound", outcome.answer.certificate.lower_bound},
          {"planner", outcome.planner},
          {"found_by", outcome.answer.found_by},
          {"seconds", outcome.seconds}};
}

Json sensitivity_json(const Problem& problem, const Sensitivity& sensitivity) {
  Json json = {{"budget",
                {{"seconds", sensitivity.budget.seconds},
                 {"threads", sensitivity.budget.threads},
                 {"seed", sensitivity.budget.seed}}},
               {"as_it_is", outcome_brief(sensitivity.as_it_is)},
               {"more", more_table(problem, sensitivity).json(sensitivity.more)}};
  for (std::size_t i = 0; i < sensitivity.more.size(); ++i) {
    json["more"][i].update(outcome_brief(sensitivity.more[i].outcome));
  }
  return json;
}

}  // namespace

Json plan_json(const Problem& problem, const Plan& plan, const PlanExplanation& explanation) {
  Json json = {{"objective", name_of(problem.objective())},
               {"value", plan.value},
               {"unit", name_of(problem.unit())}};
  if (problem.objective() == Objective::throughput) {
    json["fullest_stages"] = Json::array();
    for (const FullestStage& stage : explanation.stages) {
      json["fullest_stages"].push_back(stage_json(problem, plan, stage));
    }
    if (!explanation.turns.stages.empty()) {
      json["taking_turns"] = turns_json(problem, plan, explanation.turns);
    }
  } else {
    json["critical_path"] = path_json(problem, plan, explanation.path);
  }
  json["cuts"] = cut_table(problem).json(shown_cuts(explanation.cuts));
  json["sensitivity"] = sensitivity_json(problem, explanation.sensitivity);
  return json;
}

Json op_json(const Problem& problem, const Plan& plan, const OpExplanation& explanation) {
  const OpId op = explanation.op;
  Json json = {{"op", problem.op(op).name},
               {"device", problem.device(plan.placement[op]).name},
               {"objective", name_of(problem.objective())},
               {"value", plan.value},
               {"unit", name_of(problem.unit())},
               {"moves_with", Json::array()},
               {"moves", Json::array()},
               {"holds", explanation.holds}};
  for (const OpId member : problem.group_ops(problem.group(op))) {
    if (member != op) json["moves_with"].push_back(problem.op(member).name);
  }
  for (const OpMove& move : explanation.moves) {
    Json row = {{"device", problem.device(move.device).name},
                {"allowed", move.obstacle == Obstacle::none},
                {"value", finite_or_null(move.value())},
                {"change", finite_or_null(move.value() - plan.value)}};
    if (move.plan) {
      row["compute_change"] = move.compute_change;
      row["transfer_change"] = move.transfer_change;
    }
    if (move.obstacle != Obstacle::none) {
      row["obstacle"] = name_of(move.obstacle);
      row["reason"] = move.reason;
    }
    json["moves"].push_back(std::move(row));
  }
  return json;
}

Json problem_json(const Problem& problem, const ProblemExplanation& explanation) {
  const Conflict& conflict = explanation.conflict;
  const bool infeasible = conflict.verdict == Verdict::infeasible;
  Json json = {{"status", infeasible                              ? "infeasible"
                          : conflict.verdict == Verdict::feasible ? "feasible"
                                                                  : "unknown"},
               {"objective", name_of(problem.objective())}};
  if (!infeasible) return json;
  json["minimal"] = conflict.minimal;
  json["conflict"] = Json::array();
  for (const Constraint& constraint : conflict.members) {
    json["conflict"].push_back(
        {{"kind", name_of(constraint.kind)}, {"text", text_of(problem, constraint)}});
  }
  json["least_memory"] = nullptr;
  if (!explanation.memory) return json;
  Json devices = Json::object();
  for (const SpaceNeed& space : explanation.memory->spaces) {
    devices[space.name] = finite_or_null(space.needed);
  }
  json["least_memory"] = {{"factor", explanation.memory->factor},
                          {"not_enough", explanation.memory->not_enough},
                          {"devices", std::move(devices)}};
  return json;
}

}  // namespace placewright::cli
