// Which problem: the file, and what the command line changes in it.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "problem/problem.h"

namespace placewright::cli {

// The objective that a flag names; throws UsageError.
Objective objective_for_flag(const std::string& name);

struct ProblemOptions {
  std::string path;               // "-": standard input
  std::vector<std::string> more;  // further files, joined with the first (problem/join.h)
  std::string format;
  std::string cluster;
  std::string objective;
  std::string contiguity;
  std::string transfers;
  std::string training;
  std::string memory;
  std::optional<bool> congestion;
  std::optional<int> calls;
  std::optional<int> replicas;
  std::vector<std::string> pins;  // OP=DEVICE

  // The file as the verb's argument.
  void add_argument_to(CLI::App& verb);
  // The file as `--problem`, for verbs whose argument is a plan.
  void add_option_to(CLI::App& verb);

  // Wrong flags are a UsageError and found before any file is opened.
  [[nodiscard]] ProblemFile read() const;

  // For a plan's own reference to its problem: first `check`, then `override` before the problem
  // is read and `apply_to` after.
  void check() const;
  void override(PlanReference& reference) const;
  void apply_to(ProblemDraft& draft) const;

 private:
  void add_flags_to(CLI::App& verb);
  void join_more(ProblemFile& file, const ReadOptions& options) const;
  void apply_rules_to(Rules& rules) const;
  void apply_pins_to(ProblemDraft& draft) const;
};

}  // namespace placewright::cli
