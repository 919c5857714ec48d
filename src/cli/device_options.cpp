#include "cli/device_options.h"

#include <stdexcept>

#include <fmt/format.h>

#include "backends/import.h"
#include "cli/exit_code.h"

namespace placewright::cli {

void DeviceOptions::add_to(CLI::App& verb) {
  verb.add_option("--device", names,
                  "A set of cores (cpu:0, cpu:0-1, cpu:0,2) or an OpenVINO device; may be given "
                  "again; default: each core")
      ->group("Devices")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->take_all();
}

std::vector<Target> DeviceOptions::targets(const std::vector<RuntimeDevice>& devices) const {
  if (names.empty()) return one_target_per_core();
  try {
    return targets_named(names, devices);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--device: {}", error.what()));
  }
}

void ShapeOptions::add_to(CLI::App& verb) {
  verb.add_option("--shape", texts,
                  "The shape of an input that leaves it open, or another one: image=1x3x224x224; "
                  "may be given again")
      ->group("Model")
      ->type_name("[INPUT=]SHAPE")
      ->allow_extra_args(false)
      ->take_all();
}

Shapes ShapeOptions::shapes() const {
  try {
    return shapes_named(texts);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--shape: {}", error.what()));
  }
}

}  // namespace placewright::cli
