#include <algorithm>
#include <iterator>
#include <memory>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/target_devices.h"
#include "cli/device_options.h"
#include "cli/output_options.h"
#include "cli/record_table.h"
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
    "A device is a set of cores (cpu:0, cpu:0-3, cpu:0,2) or a device of a backend (GPU.0). The\n"
    "cluster file states usual link speeds; 'placewright profile' measures the real ones.";

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

Style memory() {
  return {Align::right, [](const Json& bytes) { return gibibytes(bytes.get<double>()); }};
}

// Said only of what is.
Style unverified() {
  return {Align::left, [](const Json& value) { return value.get<bool>() ? "unverified" : ""; }};
}

// A device that a backend has found, with the backend.
struct DeviceFound {
  std::string backend;
  RuntimeDevice device;

  [[nodiscard]] std::string memory_text() const {
    if (device.memory > 0) return gibibytes(device.memory);
    return device.space.is_host() ? "shared" : "-";
  }
};

std::vector<DeviceFound> devices_found(const BackendFound& backend) {
  std::vector<DeviceFound> found;
  for (const RuntimeDevice& device : backend.devices) {
    found.push_back({backend.entry.title, device});
  }
  return found;
}

RecordTable<DeviceFound> found_table() {
  return RecordTable<DeviceFound>({
      {kNoKey, "backend", words(), [](const auto& found) { return found.backend; }},
      {"name", "device", words(), [](const auto& found) { return found.device.name; }},
      {"full_name", "what it is", words(),
       [](const auto& found) { return found.device.full_name; }},
      {"memory", kNoTitle, size(), [](const auto& found) { return found.device.memory; }},
      {kNoKey, "memory", words(Align::right),
       [](const auto& found) { return found.memory_text(); }},
      {"own_memory", kNoTitle, words(),
       [](const auto& found) { return !found.device.space.is_host(); }},
  });
}

RecordTable<Device> cluster_table(const Cluster& cluster) {
  return RecordTable<Device>({
      {"name", "device", words(), [](const auto& device) { return device.name; }},
      {"kind", "kind", words(),
       [&](const auto& device) { return cluster.kinds[device.kind.index()].name; }},
      {"memory", "memory", memory(), [](const auto& device) { return device.memory; }},
  });
}

void print_text(const std::vector<BackendFound>& backends, const Cluster& cluster) {
  fmt::print("processor  {}\ncores      {} that this process may use: {}\n",
             printable(processor_name()), allowed_cores().size(), fmt::join(allowed_cores(), ", "));
  fmt::print("memory     {}, {} of it free\n", gibibytes(total_memory()),
             gibibytes(available_memory()));
  std::vector<DeviceFound> found;
  for (const BackendFound& backend : backends) {
    fmt::print("{:<10} {}\n", backend.entry.title,
               backend.version.empty() ? backend.obstacle : backend.version);
    std::ranges::move(devices_found(backend), std::back_inserter(found));
  }
  fmt::print("\n{}\n{}", found_table().text(found), cluster_table(cluster).text(cluster.devices));
}

Json backend_json(const BackendFound& backend) {
  Json document = {{"name", backend.entry.name},
                   {"version", backend.version.empty() ? Json(nullptr) : Json(backend.version)},
                   {"devices", found_table().json(devices_found(backend))}};
  if (!backend.obstacle.empty()) document["obstacle"] = backend.obstacle;
  return document;
}

void print_document(const std::vector<BackendFound>& backends, const Cluster& cluster) {
  Json document = {{"processor", processor_name()}, {"cores", allowed_cores()},
                   {"memory", total_memory()},      {"memory_free", available_memory()},
                   {"backends", Json::array()},     {"devices", Json::array()}};
  for (const BackendFound& backend : backends) {
    document["backends"].push_back(backend_json(backend));
  }
  document["devices"] = cluster_table(cluster).json(cluster.devices);
  print_json(document);
}

RecordTable<CatalogueDevice> catalogue_device_table() {
  return RecordTable<CatalogueDevice>({
      {"name", "device", words(), [](const auto& device) { return device.name; }},
      {"class", "class", words(), [](const auto& device) { return device.device_class; }},
      {"memory", "memory", scaled(1e-9, "{:.0f} GB"), [](const auto& d) { return d.memory; }},
      {"flops", "f32 TFLOPS", scaled(1e-12, "{:.3g}"), [](const auto& d) { return d.rates.flops; }},
      {"half_flops", "16-bit", scaled(1e-12, "{:.4g}"),
       [](const auto& d) { return std::max(d.rates.half_flops, d.rates.flops); }},
      {"bandwidth", "GB/s", scaled(1e-9, "{:.4g}"),
       [](const auto& d) { return d.rates.bandwidth; }},
      {"launch", "launch", scaled(1e6, "{:.3g} us"), [](const auto& d) { return d.rates.launch; }},
      {"unverified", "", unverified(), [](const auto& device) { return device.unverified; }},
      {"source", "source", words(), [](const auto& device) { return device.source; }},
  });
}

RecordTable<CatalogueLink> catalogue_link_table() {
  return RecordTable<CatalogueLink>({
      {"name", "link", words(), [](const auto& link) { return link.name; }},
      {"latency", "latency", scaled(1e6, "{:.3g} us"), [](const auto& l) { return l.latency; }},
      {"bandwidth", "GB/s", scaled(1e-9, "{:.4g}"), [](const auto& l) { return l.bandwidth; }},
      {"unverified", "", unverified(), [](const auto& link) { return link.unverified; }},
      {"source", "source", words(), [](const auto& link) { return link.source; }},
  });
}

ExitCode show_catalogue(const OutputOptions& output) {
  const auto& [devices, links] = std::tie(catalogue().devices, catalogue().links);
  if (output.json) {
    print_json({{"devices", catalogue_device_table().json(devices)},
                {"links", catalogue_link_table().json(links)}});
  } else if (!output.quiet) {
    fmt::print("{}\n{}", catalogue_device_table().text(devices),
               catalogue_link_table().text(links));
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
      "devices", "Show the devices of this machine, and write a cluster file");
  const auto options = std::make_shared<DevicesOptions>();
  options->devices.add_to(*verb);
  options->output.add_to(*verb);
  verb->add_flag("--catalogue", options->catalogue,
                 "List the devices and links that cluster files can name, with their sources");
  add_written(*verb, "-o,--output", options->path, "Write a cluster file; - is standard output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return show_devices(*options); }; });
}

}  // namespace placewright::cli
