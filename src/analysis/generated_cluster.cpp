#include "analysis/generated_cluster.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr Slowness kSpeedOne{1024, 1024};
constexpr double kMultiprocessors = 64;          // of a GPU
constexpr double kStreamOverhead = 0.0025;       // ms: an event is recorded, or waited for
constexpr double kMicroseconds = 1000;           // of a millisecond
constexpr std::uint64_t kLeastBandwidth = 1000;  // of a link, in 1000 bytes per millisecond

// Each core, neighbours by two, four and so on, all.
std::vector<std::size_t> set_widths(std::size_t cores) {
  std::vector<std::size_t> widths;
  for (std::size_t width = 1; width < cores; width *= 2) widths.push_back(width);
  if (cores > 0) widths.push_back(cores);
  return widths;
}

class ClusterGenerator {
 public:
  ClusterGenerator(const GenerateOptions& options, RandomNumbers& random)
      : options_(options), random_(random) {}

  GeneratedCluster build() {
    cluster().interconnect = has_host(options_) ? InterconnectKind::host : InterconnectKind::links;
    if (has_host(options_)) {
      add_accelerators_and_host();
    } else if (options_.shared_cores > 0) {
      add_core_sets(kSpeedOne, false);
    } else {
      add_linked_devices();
    }
    return std::move(made_);
  }

 private:
  Cluster& cluster() { return made_.cluster; }

  KindId add_kind(const std::string& name, bool on_host, const GeneratedKind& kind) {
    cluster().kinds.push_back({name, on_host});
    made_.kinds.push_back(kind);
    return KindId{cluster().kinds.size() - 1};
  }

  std::vector<DeviceId> add_device(const std::string& name, KindId kind, std::size_t number);
  void join(const std::vector<std::vector<DeviceId>>& groups);
  void add_linked_devices();
  void add_accelerators_and_host();
  void add_core_sets(const Slowness& one_core, bool on_host);
  std::vector<DeviceId> add_socket(std::size_t first, std::size_t cores,
                                   const std::vector<KindId>& kinds);

  const GenerateOptions& options_;
  RandomNumbers& random_;
  GeneratedCluster made_;
};

// The device itself, or the streams that it is as a GPU: each may take all of its multiprocessors.
std::vector<DeviceId> ClusterGenerator::add_device(const std::string& name, KindId kind,
                                                   std::size_t number) {
  std::vector<DeviceId> added;
  const auto add = [&](Device device) {
    added.emplace_back(cluster().devices.size());
    cluster().devices.push_back(std::move(device));
  };
  if (options_.streams == 0) {
    add({.name = fmt::format("{}{}", name, number), .kind = kind});
    return added;
  }
  const ResourceId multiprocessors{cluster().resources.size()};
  const SpaceId memory{cluster().spaces.size()};
  cluster().resources.push_back({fmt::format("gpu {}", number), kMultiprocessors});
  cluster().spaces.push_back({.name = fmt::format("memory of gpu {}", number)});
  for (std::size_t stream = 0; stream < options_.streams; ++stream) {
    Device device{.name = fmt::format("gpu{}.stream{}", number, stream), .kind = kind};
    device.send_overhead = device.receive_overhead = kStreamOverhead;
    device.space = memory;
    device.uses = {{multiprocessors, kMultiprocessors}};
    add(std::move(device));
  }
  return added;
}

// Groups share a memory each; all pairs of devices of two groups have the same link, both ways.
void ClusterGenerator::join(const std::vector<std::vector<DeviceId>>& groups) {
  for (std::size_t first = 0; first < groups.size(); ++first) {
    for (std::size_t second = first + 1; second < groups.size(); ++second) {
      const double latency = static_cast<double>(random_.spread(5, 3)) / kMicroseconds;
      const auto bandwidth = static_cast<double>(1000 * random_.spread(kLeastBandwidth, 4));
      for (const DeviceId from : groups[first]) {
        for (const DeviceId to : groups[second]) {
          cluster().links.push_back({from, to, latency, bandwidth});
          cluster().links.push_back({to, from, latency, bandwidth});
        }
      }
    }
  }
}

// Speeds spread over a factor of 16; a kind may be fast at one sort of op and slow at the other.
void ClusterGenerator::add_linked_devices() {
  const std::size_t kinds = std::min(options_.kinds, options_.devices);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const std::uint64_t heavy = random_.spread(256, 4);
    const std::uint64_t light = random_.spread(512, 2);
    add_kind(fmt::format("kind{}", kind), false,
             {.slowness = {heavy, light}, .stream = options_.streams > 0});
  }
  std::vector<std::vector<DeviceId>> groups;
  for (std::size_t i = 0; i < options_.devices; ++i) {
    groups.push_back(add_device("d", KindId{i % cluster().kinds.size()}, i));
  }
  join(groups);
}

// As the published inputs: accelerators of one kind, CPU cores several times slower and without a
// limit of memory. Where the host is one device, so are the cores.
void ClusterGenerator::add_accelerators_and_host() {
  const KindId accelerator =
      add_kind("accelerator", false, {.slowness = kSpeedOne, .stream = options_.streams > 0});
  const std::uint64_t heavy = 1024 * random_.between(6, 12);
  const std::uint64_t light = 1024 + random_.below(2048);
  for (std::size_t i = 0; i < options_.accelerators; ++i) add_device("acc", accelerator, i);
  if (options_.shared_cores > 0) {
    add_core_sets({heavy, light}, true);
    return;
  }
  const KindId core = add_kind("cpu", true, {.slowness = {heavy, light}});
  if (record_of(options_.objective).one_host) {
    cluster().devices.push_back({.name = "cpu", .kind = core});
    return;
  }
  for (std::size_t i = 0; i < options_.cores; ++i) {
    cluster().devices.push_back({.name = fmt::format("cpu{}", i), .kind = core});
  }
}

// The times of a wider set are shorter, but not in proportion, and less so for light ops.
void ClusterGenerator::add_core_sets(const Slowness& one_core, bool on_host) {
  const std::size_t cores = options_.shared_cores / options_.sockets;
  std::vector<KindId> kinds;
  for (const std::size_t width : set_widths(cores)) {
    const Slowness slowness{one_core.heavy * (width + 9) / (10 * width),
                            one_core.light * (width + 3) / (4 * width)};
    kinds.push_back(
        add_kind(fmt::format("cpu-{}", width), on_host, {.slowness = slowness, .core_set = true}));
  }
  std::vector<std::vector<DeviceId>> sockets;
  for (std::size_t socket = 0; socket < options_.sockets; ++socket) {
    sockets.push_back(add_socket(socket * cores, cores, kinds));
  }
  join(sockets);
}

std::vector<DeviceId> ClusterGenerator::add_socket(std::size_t first, std::size_t cores,
                                                   const std::vector<KindId>& kinds) {
  const SpaceId memory{cluster().spaces.size()};
  const ResourceId resource{cluster().resources.size()};
  cluster().spaces.push_back({.name = options_.sockets == 1
                                          ? std::string("memory")
                                          : fmt::format("memory of socket {}", first / cores)});
  for (std::size_t core = first; core < first + cores; ++core) {
    cluster().resources.push_back({.name = fmt::format("core {}", core)});
  }
  std::vector<DeviceId> sets;
  const std::vector<std::size_t> widths = set_widths(cores);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::size_t width = widths[i];
    for (std::size_t begin = 0; begin + width <= cores; begin += width) {
      const std::size_t core = first + begin;
      Device device{.name = width == 1 ? fmt::format("cpu:{}", core)
                                       : fmt::format("cpu:{}-{}", core, core + width - 1),
                    .kind = kinds[i]};
      device.space = memory;
      for (std::size_t k = begin; k < begin + width; ++k) {
        device.uses.push_back({ResourceId{resource.index() + k}, 1});
      }
      sets.emplace_back(cluster().devices.size());
      cluster().devices.push_back(std::move(device));
    }
  }
  return sets;
}

}  // namespace

std::size_t generated_device_count(const GenerateOptions& options) {
  const std::size_t streams = std::max<std::size_t>(1, options.streams);
  std::size_t sets = 0;
  if (options.shared_cores > 0) {
    const std::size_t cores = options.shared_cores / std::max<std::size_t>(1, options.sockets);
    for (const std::size_t width : set_widths(cores)) sets += options.sockets * (cores / width);
  }
  if (record_of(options.objective).one_host) return options.accelerators * streams + 1;
  if (has_host(options)) return options.accelerators * streams + options.cores + sets;
  return sets > 0 ? sets : options.devices * streams;
}

GeneratedCluster generate_cluster(const GenerateOptions& options, RandomNumbers& random) {
  return ClusterGenerator(options, random).build();
}

}  // namespace placewright
