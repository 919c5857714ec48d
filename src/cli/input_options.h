// Values for the inputs of models: `--input image=cat.png`, the same for every verb that runs
// models.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "backends/runtime.h"
#include "formats/array.h"
#include "problem/problem.h"

namespace placewright::cli {

struct InputOptions {
  std::vector<std::string> texts;  // [MODEL:][INPUT=]FILE

  void add_to(CLI::App& verb);
  // By model, as the models take them. Throws InputError for a file that cannot be read, UsageError
  // for one that does not fit.
  [[nodiscard]] std::vector<NamedArrays> read(
      const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models) const;
};

}  // namespace placewright::cli
