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
               "A set of cores (cpu:0, cpu:0-1, cpu:0,2) or a backend's device (GPU.0); may be "
               "given again; default: nested sets of the cores")
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
  verb.add_flag("--fresh", fresh, "Measure the model anew, whatever was kept of it")
      ->group("Model");
}

void MeasuringOptions::add_time_to(CLI::App& verb) {
  add_number(verb, "--profile-time", seconds, {1, 86400}, "Seconds to measure each model, at most")
      ->group("Model");
}

const BackendEntry& backend_of_models(const std::vector<std::string>& paths) {
  const BackendEntry* reader = backend_reading(paths.front());
  return reader != nullptr ? *reader : backend_named(kDefaultBackend);
}

void ModelOptions::add_to(CLI::App& verb) {
  add_choice(verb, "--precision", precision,
             "What the model computes in; default: what the backend chooses, as without a plan")
      ->group("Model");
  add_repeated(verb, "--shape", shapes, "[MODEL:][INPUT=]SHAPE",
               "The shape of an input that leaves it open, or another one: image=1x3x224x224; "
               "of several models, MODEL:image=1x3x224x224; may be given again")
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
