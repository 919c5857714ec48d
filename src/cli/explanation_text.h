// Explanations as a person, or a program, reads them.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "analysis/conflict.h"
#include "analysis/cuts.h"
#include "analysis/limits.h"
#include "analysis/more_of.h"
#include "analysis/op_moves.h"
#include "analysis/stage_turns.h"
#include "cli/record_table.h"

namespace placewright::cli {

struct PlanExplanation {
  CriticalPath path;                 // schedules, calls
  std::vector<FullestStage> stages;  // pipelines
  TakingTurns turns;                 // of their stages, where that makes the period
  std::vector<Cut> cuts;
  Sensitivity sensitivity;
};

struct OpExplanation {
  OpId op;
  std::vector<OpMove> moves;
  std::vector<std::string> holds;
};

struct ProblemExplanation {
  Conflict conflict;
  std::optional<LeastMemory> memory;
};

// What an op, transfer or call on the critical path is called.
std::string step_name(const Problem& problem, const Plan& plan, const PathStep& step);

// The cuts that are shown: the most costly ones.
inline constexpr std::size_t kShownCuts = 5;
std::span<const Cut> shown_cuts(const std::vector<Cut>& cuts);
RecordTable<Cut> cut_table(const Problem& problem);

// The stages that take turns, by their numbers in the plan.
RecordTable<std::size_t> turn_table(const Problem& problem, const Plan& plan);

// What a little more of something brings.
RecordTable<MoreOf> more_table(const Problem& problem, const Sensitivity& sensitivity);

std::string plan_text(const Problem& problem, const Plan& plan, const PlanExplanation& explanation,
                      bool verbose);
std::string op_text(const Problem& problem, const Plan& plan, const OpExplanation& explanation);
std::string problem_text(const Problem& problem, const ProblemExplanation& explanation);

nlohmann::ordered_json plan_json(const Problem& problem, const Plan& plan,
                                 const PlanExplanation& explanation);
nlohmann::ordered_json op_json(const Problem& problem, const Plan& plan,
                               const OpExplanation& explanation);
nlohmann::ordered_json problem_json(const Problem& problem, const ProblemExplanation& explanation);

}  // namespace placewright::cli
