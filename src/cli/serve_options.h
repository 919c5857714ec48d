// The options of `placewright serve` that say how models are served, and what they become.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include "serving/scheduler.h"

namespace placewright::cli {

struct ServiceOptions {
  SchedulerOptions scheduler;
  // Each "MODEL=VALUE", or "VALUE" for all models.
  std::vector<std::string> objectives;
  std::vector<std::string> priorities;
  std::vector<std::string> weights;
  std::vector<std::string> queues;

  void add_to(CLI::App& verb);
  // Throws UsageError for a value that cannot be read, and for a model that is not among these.
  void apply(std::vector<ServedModel>& models) const;
};

// "MODEL=VALUE" in parts; without a model the name is empty.
struct ModelValue {
  std::string model;
  std::string value;
};
ModelValue model_value(const std::string& text);

// The models that are meant: one, or with an empty name all of them. Throws UsageError.
std::vector<ServedModel*> models_named(std::vector<ServedModel>& models, std::string_view option,
                                       const std::string& name);

}  // namespace placewright::cli
