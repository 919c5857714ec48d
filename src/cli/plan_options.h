// A plan as a verb's argument, and the problem it belongs to.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "placewright/placewright.h"

namespace placewright::cli {

struct PlanOptions {
  std::string path;
  ProblemOptions problem;

  void add_to(CLI::App& verb);
  // Throws InputError; also where the problem is no longer the one that the plan was made for.
  [[nodiscard]] OpenedPlan read(const OutputOptions& output) const;
};

// Whether the plan keeps the rules; stderr tells the first one that it breaks.
bool is_valid(const OpenedPlan& opened);

// The plan in a file for `--start`; nullopt for an empty path. Throws InputError.
std::optional<Plan> start_plan(const std::string& path, const Problem& problem,
                               const std::vector<std::string>& op_ids);

}  // namespace placewright::cli
