#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/runtime.h"
#include "cli/device_options.h"
#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/cluster_file.h"
#include "formats/text_file.h"
#include "machine/target_cluster.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright devices\n"
    "  placewright devices --device cpu:0 --device cpu:1-2 -o cluster.json\n"
    "\n"
    "A device is a set of cores (cpu:0, cpu:0-3, cpu:0,2) or an OpenVINO device (GPU.0). The\n"
    "cluster file has usual link speeds; 'placewright profile' measures them.";

struct DevicesOptions {
  DeviceOptions devices;
  OutputOptions output;
  std::string path;
};

// What was found; without OpenVINO there are still cores.
struct Machine {
  std::string version;
  std::string obstacle;  // why OpenVINO cannot be used
  std::vector<RuntimeDevice> devices;
};

Machine machine_found() {
  Machine machine;
  try {
    const Runtime& runtime = openvino_runtime();
    machine.version = runtime.version();
    machine.devices = runtime.devices();
  } catch (const RuntimeError& error) {
    machine.obstacle = error.what();
  }
  return machine;
}

std::string gibibytes(double bytes) {
  return bytes < kInfinity ? fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024 * 1024)) : "-";
}

void print_text(const Machine& machine, const Cluster& cluster) {
  fmt::print("processor  {}\ncores      {} that this process may use: {}\n",
             printable(processor_name()), allowed_cores().size(), fmt::join(allowed_cores(), ", "));
  fmt::print("memory     {}, {} of it free\n", gibibytes(total_memory()),
             gibibytes(available_memory()));
  fmt::print("OpenVINO   {}\n\n", machine.version.empty() ? machine.obstacle : machine.version);
  if (!machine.devices.empty()) {
    TextTable found({{"OpenVINO device"}, {"what it is"}, {"memory", Align::right}});
    for (const auto& device : machine.devices) {
      found.add(
          {device.name, device.full_name, device.memory > 0 ? gibibytes(device.memory) : "shared"});
    }
    fmt::print("{}\n", found.text());
  }
  TextTable table({{"device"}, {"kind"}, {"memory", Align::right}});
  for (const Device& device : cluster.devices) {
    table.add({device.name, cluster.kinds[device.kind.index()].name, gibibytes(device.memory)});
  }
  fmt::print("{}", table.text());
}

void print_document(const Machine& machine, const Cluster& cluster) {
  Json document = {{"processor", processor_name()},
                   {"cores", allowed_cores()},
                   {"memory", total_memory()},
                   {"memory_free", available_memory()},
                   {"openvino", machine.version.empty() ? Json(nullptr) : Json(machine.version)},
                   {"openvino_devices", Json::array()},
                   {"devices", Json::array()}};
  if (!machine.obstacle.empty()) document["obstacle"] = machine.obstacle;
  for (const auto& device : machine.devices) {
    document["openvino_devices"].push_back(
        {{"name", device.name}, {"full_name", device.full_name}, {"memory", device.memory}});
  }
  for (const Device& device : cluster.devices) {
    document["devices"].push_back({{"name", device.name},
                                   {"kind", cluster.kinds[device.kind.index()].name},
                                   {"memory", finite_or_null(device.memory)}});
  }
  print_json(document);
}

ExitCode show_devices(const DevicesOptions& options) {
  const Machine machine = machine_found();
  const Cluster cluster =
      cluster_of_targets(options.devices.targets(machine.devices), machine.devices);
  if (options.path != "-") {
    if (options.output.json) {
      print_document(machine, cluster);
    } else if (!options.output.quiet) {
      print_text(machine, cluster);
    }
  }
  if (!options.path.empty()) write_whole(options.path, write_cluster(cluster));
  return ExitCode::success;
}

}  // namespace

void add_devices(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "devices", "What this machine can run models on, and a cluster file from it");
  const auto options = std::make_shared<DevicesOptions>();
  options->devices.add_to(*verb);
  options->output.add_to(*verb);
  verb->add_option("-o,--output", options->path, "Write a cluster file; - is standard output")
      ->type_name("FILE")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return show_devices(*options); }; });
}

}  // namespace placewright::cli
