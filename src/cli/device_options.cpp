#include "cli/device_options.h"

#include <stdexcept>

#include <fmt/format.h>

#include "backends/target_devices.h"
#include "cli/choice_option.h"
#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "cli/repeated_option.h"

namespace placewright::cli {

void DeviceOptions::add_to(CLI::App& verb) {
  add_repeated(verb, "--device", names, "NAME",
               "Use this set of cores (cpu:0, cpu:0-1, cpu:0,2) or this device of a backend "
               "(GPU.0); repeatable; default: nested sets of the cores")
      ->group("Devices");
}

std::vector<Target> DeviceOptions::targets(const BackendEntry& backend) const {
  if (names.empty()) return all_targets(backend);
  try {
    return targets_named(names);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--device: {}", error.what()));
  }
}

void MeasuringOptions::add_to(CLI::App& verb) {
  add_time_to(verb);
  verb.add_flag("--fresh", fresh, "Measure the model again; do not use times that were kept")
      ->group("Model");
}

void MeasuringOptions::add_time_to(CLI::App& verb) {
  add_number(verb, "--profile-time", seconds, {1, 86400},
             "Measure each model for at most this many seconds")
      ->group("Model");
}

const BackendEntry& backend_of_models(const std::vector<std::string>& paths) {
  const BackendEntry* reader = backend_reading(paths.front());
  return reader != nullptr ? *reader : backend_named(kDefaultBackend);
}

void ModelOptions::add_to(CLI::App& verb) {
  add_choice(verb, "--precision", precision,
             "Compute in this precision; 'default' is the one that the backend chooses by itself")
      ->group("Model");
  add_repeated(verb, "--shape", shapes, "[MODEL:][INPUT=]SHAPE",
               "Give an input this shape: image=1x3x224x224, or MODEL:image=1x3x224x224 with "
               "several models; repeatable")
      ->group("Model");
}

std::vector<ModelFile> ModelOptions::files(const std::vector<std::string>& paths) const {
  try {
    return model_files(paths, shapes, precision.value_or(Precision::by_default));
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--shape: {}", error.what()));
  }
}

}  // namespace placewright::cli
