// How much work a planner may do, and from where it starts.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/App.hpp>

#include "planners/planner.h"

namespace placewright::cli {

struct BudgetOptions {
  std::string time_limit = "10s";
  const CLI::Option* time_limit_option = nullptr;  // whether it was given
  std::optional<std::uint64_t> steps;
  std::optional<int> threads;  // none: the cores of the process, and with `steps` 1
  std::optional<double> memory_megabytes;
  std::uint64_t seed = 1;
  std::string start;  // a plan file; empty: none

  // Whether the verb takes a plan to start from.
  enum class Start { plan, none };

  void add_to(CLI::App& verb, Start from = Start::plan);
  // Throws UsageError.
  [[nodiscard]] Budget budget() const;
};

}  // namespace placewright::cli
