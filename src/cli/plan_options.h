// Plans in files: reading one with its problem, and writing one.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "formats/plan_file.h"
#include "planning/service.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::cli {

struct PlanWithProblem {
  Problem problem;
  Plan plan;
  PlanFile file;  // what else the file says; its plan has moved to `plan`
};

// A plan as a verb's argument, and the problem it belongs to.
struct PlanOptions {
  std::string path;
  ProblemOptions problem;

  void add_to(CLI::App& verb);
  // Throws InputError; also where the problem is no longer the one that the plan was made for.
  [[nodiscard]] PlanWithProblem read(const OutputOptions& output) const;
};

// The plan in a file for `--start`; nothing for an empty path. Throws InputError.
std::optional<Plan> start_plan(const std::string& path, const Problem& problem,
                               const std::vector<std::string>& op_ids);

// How a plan file will refer to the problem that was read.
ProblemReference reference_to(const ProblemFile& file, const ProblemOptions& options);

// Writes the outcome's plan. The problem is put into the file where the file could not lead to it.
void save_plan(const std::string& path, const Problem& problem, const PlanOutcome& outcome,
               const Budget& budget, const ProblemReference& reference, bool embed);

}  // namespace placewright::cli
