#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/target_devices.h"
#include "cli/device_options.h"
#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/catalogue.h"
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
    "  placewright devices --catalogue                  what cluster files can name\n"
    "\n"
    "A device is a set of cores (cpu:0, cpu:0-3, cpu:0,2) or a backend's device (GPU.0). The\n"
    "cluster file has usual link speeds; 'placewright profile' measures them.";

struct DevicesOptions {
  DeviceOptions devices;
  bool catalogue = false;
  OutputOptions output;
  std::string path;
};

// What a backend has here.
struct BackendFound {
  const BackendEntry& entry;
  std::string version;   // empty: it cannot be used
  std::string obstacle;  // why
  std::vector<RuntimeDevice> devices;
};

std::vector<BackendFound> backends_found() {
  std::vector<BackendFound> found;
  for (const BackendEntry& entry : backend_entries()) {
    BackendFound& backend = found.emplace_back(BackendFound{entry, {}, {}, {}});
    try {
      const Runtime& runtime = runtime_named(entry.name);
      backend.version = runtime.version();
      backend.devices = runtime.devices();
    } catch (const RuntimeError& error) {
      backend.obstacle = error.what();
    }
  }
  return found;
}

std::string gibibytes(double bytes) {
  return bytes < kInfinity ? fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024 * 1024)) : "-";
}

std::string memory_text(const RuntimeDevice& device) {
  if (device.memory > 0) return gibibytes(device.memory);
  return device.space.is_host() ? "shared" : "-";
}

void print_text(const std::vector<BackendFound>& backends, const Cluster& cluster) {
  fmt::print("processor  {}\ncores      {} that this process may use: {}\n",
             printable(processor_name()), allowed_cores().size(), fmt::join(allowed_cores(), ", "));
  fmt::print("memory     {}, {} of it free\n", gibibytes(total_memory()),
             gibibytes(available_memory()));
  TextTable found({{"backend"}, {"device"}, {"what it is"}, {"memory", Align::right}});
  for (const BackendFound& backend : backends) {
    fmt::print("{:<10} {}\n", backend.entry.title,
               backend.version.empty() ? backend.obstacle : backend.version);
    for (const RuntimeDevice& device : backend.devices) {
      found.add({backend.entry.title, device.name, device.full_name, memory_text(device)});
    }
  }
  fmt::print("\n{}\n", found.text());
  TextTable table({{"device"}, {"kind"}, {"memory", Align::right}});
  for (const Device& device : cluster.devices) {
    table.add({device.name, cluster.kinds[device.kind.index()].name, gibibytes(device.memory)});
  }
  fmt::print("{}", table.text());
}

Json backend_json(const BackendFound& backend) {
  Json document = {{"name", backend.entry.name},
                   {"version", backend.version.empty() ? Json(nullptr) : Json(backend.version)},
                   {"devices", Json::array()}};
  if (!backend.obstacle.empty()) document["obstacle"] = backend.obstacle;
  for (const RuntimeDevice& device : backend.devices) {
    document["devices"].push_back({{"name", device.name},
                                   {"full_name", device.full_name},
                                   {"memory", device.memory},
                                   {"own_memory", !device.space.is_host()}});
  }
  return document;
}

void print_document(const std::vector<BackendFound>& backends, const Cluster& cluster) {
  Json document = {{"processor", processor_name()}, {"cores", allowed_cores()},
                   {"memory", total_memory()},      {"memory_free", available_memory()},
                   {"backends", Json::array()},     {"devices", Json::array()}};
  for (const BackendFound& backend : backends) {
    document["backends"].push_back(backend_json(backend));
  }
  for (const Device& device : cluster.devices) {
    document["devices"].push_back({{"name", device.name},
                                   {"kind", cluster.kinds[device.kind.index()].name},
                                   {"memory", finite_or_null(device.memory)}});
  }
  print_json(document);
}

std::string checked_text(bool unverified) {
  return unverified ? "unverified" : "";
}

void print_catalogue_text() {
  TextTable devices({{"device"},
                     {"class"},
                     {"memory", Align::right},
                     {"f32 TFLOPS", Align::right},
                     {"GB/s", Align::right},
                     {"launch", Align::right},
                     {""},
                     {"source"}});
  for (const CatalogueDevice& device : catalogue().devices) {
    devices.add({device.name, device.device_class, fmt::format("{:.0f} GB", device.memory / 1e9),
                 fmt::format("{:.3g}", device.rates.flops / 1e12),
                 fmt::format("{:.4g}", device.rates.bandwidth / 1e9),
                 fmt::format("{:.3g} us", device.rates.launch * 1e6),
                 checked_text(device.unverified), device.source});
  }
  TextTable links({{"link"}, {"latency", Align::right}, {"GB/s", Align::right}, {""}, {"source"}});
  for (const CatalogueLink& link : catalogue().links) {
    links.add({link.name, fmt::format("{:.3g} us", link.latency * 1e6),
               fmt::format("{:.4g}", link.bandwidth / 1e9), checked_text(link.unverified),
               link.source});
  }
  fmt::print("{}\n{}", devices.text(), links.text());
}

void print_catalogue_document() {
  Json document = {{"devices", Json::array()}, {"links", Json::array()}};
  for (const CatalogueDevice& device : catalogue().devices) {
    document["devices"].push_back({{"name", device.name},
                                   {"class", device.device_class},
                                   {"memory", device.memory},
                                   {"flops", device.rates.flops},
                                   {"bandwidth", device.rates.bandwidth},
                                   {"launch", device.rates.launch},
                                   {"source", device.source},
                                   {"unverified", device.unverified}});
  }
  for (const CatalogueLink& link : catalogue().links) {
    document["links"].push_back({{"name", link.name},
                                 {"latency", link.latency},
                                 {"bandwidth", link.bandwidth},
                                 {"source", link.source},
                                 {"unverified", link.unverified}});
  }
  print_json(document);
}

ExitCode show_catalogue(const OutputOptions& output) {
  if (output.json) {
    print_catalogue_document();
  } else {
    print_catalogue_text();
  }
  return ExitCode::success;
}

ExitCode show_devices(const DevicesOptions& options) {
  if (options.catalogue) return show_catalogue(options.output);
  const std::vector<BackendFound> backends = backends_found();
  const std::vector<Target> targets = options.devices.targets(backend_named(kDefaultBackend));
  const Cluster cluster = cluster_of_targets(targets, devices_of(targets));
  if (options.path != "-") {
    if (options.output.json) {
      print_document(backends, cluster);
    } else if (!options.output.quiet) {
      print_text(backends, cluster);
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
  verb->add_flag("--catalogue", options->catalogue,
                 "The devices and links that cluster files can name, with their sources");
  verb->add_option("-o,--output", options->path, "Write a cluster file; - is standard output")
      ->type_name("FILE")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return show_devices(*options); }; });
}

}  // namespace placewright::cli
