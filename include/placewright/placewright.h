// Placewright as a library: read or build a placement problem, plan it, check it, keep the plan.
//
//   using namespace placewright;
//   const Problem problem = open_problem("model.json");
//   const PlanOutcome outcome = solve(problem, {.planner = "auto", .budget = {.seconds = 5}});
//   if (outcome.answer.plan) save_plan("plan.json", problem, outcome);
//
// This header and those that it includes are the whole public interface, and the words that the
// program itself is written in: problem/ (a problem as plain records, checked and frozen; plans and
// certificates), planners/planner.h (what a planner is, its options, budget and progress),
// planning/plan_request.h (what is asked, and the outcome), verify/verifier.h (what is wrong with a
// plan), formats/ (how files are read, and what a plan file keeps). Everything is in the namespace
// placewright.
//
// Errors are exceptions whose message is one sentence: std::runtime_error for what is wrong with a
// file or a draft (the sentence names the file and the place in it, or the record), and
// std::invalid_argument for a request that makes no sense (an unknown planner, option or format).
// "Nothing fits", "no plan found" and "time is up" are not errors but outcomes. Nothing prints,
// nothing ends the program. Functions may be called from several threads at once; a Problem may be
// shared by them.

#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placewright/formats/plan_record.h"
#include "placewright/formats/read_options.h"
#include "placewright/planners/planner.h"
#include "placewright/planning/plan_request.h"
#include "placewright/problem/draft.h"
#include "placewright/problem/ids.h"
#include "placewright/problem/objective.h"
#include "placewright/problem/plan.h"
#include "placewright/problem/problem.h"
#include "placewright/verify/verifier.h"

namespace placewright {

// "0.1.0"
std::string_view library_version();

// A problem from a file, of our own format or a published one. A problem made in code is
// `Problem(draft)`, which throws InvalidProblem (a std::runtime_error) when the draft breaks a
// rule.
Problem open_problem(const std::string& path, const ReadOptions& options = {});

// The same from text in memory; `origin` is what messages call it.
Problem read_problem_text(std::string_view text, const std::string& origin,
                          const ReadOptions& options = {});

// In our own format. Written whole or not at all.
void save_problem(const std::string& path, const Problem& problem);

// Every planner, as `placewright planners` lists them.
std::vector<PlannerEntry> available_planners();

// Plans, and returns only what the verifier accepts. Set `stop` to end early with the best so far;
// `observer` is told of progress in the thread that called, however many threads plan.
PlanOutcome solve(const Problem& problem, const PlanRequest& request = {},
                  const std::atomic<bool>* stop = nullptr, const Control::Observer& observer = {});

// The plan that a bare placement stands for: the better of two list schedules, one stage for each
// device, or the calls that the placement needs. Returns nullopt if the placement breaks a rule on
// links, contiguity or calls; memory is left to verify().
std::optional<Plan> plan_for(const Problem& problem, const Placement& placement);

// The outcome as a plan file keeps it. Throws std::invalid_argument when the outcome has no plan.
PlanFile plan_file_of(const PlanOutcome& outcome);

struct SavePlanOptions {
  ProblemReference problem = {};  // the file that the plan refers to
  bool embed = false;             // put the whole problem into the plan's file as well
};

// Writes the outcome's plan, whole or not at all. The problem is put into the file in any case
// where the reference could not lead to it: there is none, it is standard input, or ops have been
// pinned. Throws std::invalid_argument when the outcome has no plan.
void save_plan(const std::string& path, const Problem& problem, const PlanOutcome& outcome,
               const SavePlanOptions& options = {});

// What to change in the problem that a plan names, or holds.
struct OpenPlanOptions {
  std::string problem = {};  // path of the problem to use in its place
  ReadOptions read = {};     // where they are given they replace what the plan says
  std::function<void(ProblemDraft&)> change = {};  // the last word before the problem is checked
};

// A plan file with its problem.
struct OpenedPlan {
  Problem problem;
  PlanFile file;  // its plan has a value and what else belongs to the objective

  [[nodiscard]] const Plan& plan() const { return file.plan; }

  // Of the rules, by the plan and by what the file states of it; empty: it is valid.
  [[nodiscard]] std::vector<Violation> violations() const;
};

// Refused: a file without a plan, and a problem that has changed since the plan was made.
OpenedPlan open_plan(const std::string& path, const OpenPlanOptions& options = {});

// A plan file for a problem that is there already, for instance as PlanRequest::start. `op_ids` are
// what the node ids of an expert split refer to; empty: the ops' names.
PlanFile open_plan_of(const Problem& problem, const std::string& path,
                      std::span<const std::string> op_ids = {});

}  // namespace placewright
