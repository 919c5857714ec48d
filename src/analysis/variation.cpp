#include "analysis/variation.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "problem/memory_spaces.h"
#include "problem/part.h"

namespace placewright {
namespace {

void divide(std::vector<double>& numbers, double factor) {
  if (factor == 1) return;
  for (double& number : numbers) number /= factor;
}

bool on_host(const ProblemDraft& draft, const Device& device) {
  return draft.cluster.interconnect == InterconnectKind::host &&
         draft.cluster.kinds[device.kind.index()].on_host;
}

std::string name_of_copy(const ProblemDraft& draft, const std::string& name) {
  const auto taken = [&](const std::string& candidate) {
    return std::any_of(draft.cluster.devices.begin(), draft.cluster.devices.end(),
                       [&](const Device& device) { return device.name == candidate; });
  };
  for (int number = 2;; ++number) {
    std::string candidate = fmt::format("{}-{}", name, number);
    if (!taken(candidate)) return candidate;
  }
}

// Gives the device a kind of its own that is like the one it had.
std::size_t own_kind(ProblemDraft& draft, DeviceId id) {
  Device& device = draft.cluster.devices[id.index()];
  const KindId old_kind = device.kind;
  const KindId new_kind{draft.cluster.kinds.size()};
  DeviceKind kind = draft.cluster.kinds[old_kind.index()];
  kind.name = fmt::format("{} ({})", kind.name, device.name);
  draft.cluster.kinds.push_back(std::move(kind));
  device.kind = new_kind;
  for (Op& op : draft.ops) {
    op.time.push_back(op.time[old_kind.index()]);
    if (!op.share.empty()) op.share.push_back(op.share[old_kind.index()]);
  }
  for (Tensor& tensor : draft.tensors) {
    const auto found = std::ranges::find(tensor.cuts, old_kind, &CutOverhead::kind);
    if (found == tensor.cuts.end()) continue;
    CutOverhead cut = *found;
    cut.kind = new_kind;
    tensor.cuts.push_back(cut);
  }
  return new_kind.index();
}

}  // namespace

ProblemDraft with_memory(ProblemDraft draft, double factor) {
  for (Device& device : draft.cluster.devices) device.memory *= factor;
  for (Space& space : draft.cluster.spaces) space.memory *= factor;
  return draft;
}

ProblemDraft with_memory(ProblemDraft draft, DeviceId device, double factor) {
  stated_memory(draft.cluster, device) *= factor;
  return draft;
}

ProblemDraft with_bandwidth(ProblemDraft draft, double factor) {
  for (Link& link : draft.cluster.links) link.bandwidth *= factor;
  for (Tensor& tensor : draft.tensors) {
    tensor.host_time /= factor;
    divide(tensor.link_times, factor);
  }
  return draft;
}

ProblemDraft with_bandwidth(ProblemDraft draft, DeviceId from, DeviceId to, double factor) {
  for (const DeviceId sender : devices_beside(draft.cluster, from)) {
    for (const DeviceId receiver : devices_beside(draft.cluster, to)) {
      for (Link& link : draft.cluster.links) {
        if (link.from == sender && link.to == receiver) link.bandwidth *= factor;
      }
      const std::size_t pair = sender.index() * draft.cluster.devices.size() + receiver.index();
      for (Tensor& tensor : draft.tensors) {
        if (!tensor.link_times.empty()) tensor.link_times[pair] /= factor;
      }
    }
  }
  return draft;
}

ProblemDraft with_speed(ProblemDraft draft, double factor) {
  for (Op& op : draft.ops) divide(op.time, factor);
  return draft;
}

ProblemDraft with_speed(ProblemDraft draft, DeviceId device, double factor) {
  const std::size_t kind = own_kind(draft, device);
  for (Op& op : draft.ops) op.time[kind] /= factor;
  return draft;
}

ProblemDraft with_forbidden(ProblemDraft draft, const std::vector<std::size_t>& ops,
                            DeviceId device) {
  const KindId shared = draft.cluster.devices[device.index()].kind;
  const auto sharing = std::ranges::count(draft.cluster.devices, shared, &Device::kind);
  const std::size_t kind = sharing > 1 ? own_kind(draft, device) : shared.index();
  for (const std::size_t op : ops) draft.ops[op].time[kind] = kUnsupported;
  return draft;
}

ProblemDraft with_batch(ProblemDraft draft, double factor, const BatchGrowth& growth) {
  for (const OpId op : ids<OpId>(draft.ops.size())) {
    std::vector<double>& times = draft.ops[op.index()].time;
    for (std::size_t kind = 0; kind < times.size(); ++kind) {
      times[kind] *= growth ? growth(op, KindId{kind}, factor) : factor;
    }
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.bytes *= factor;
    tensor.host_time *= factor;
    divide(tensor.link_times, 1 / factor);
  }
  return draft;
}

ProblemDraft with_devices(ProblemDraft draft, const std::vector<std::size_t>& kept) {
  if (kept.empty()) throw std::invalid_argument("at least one device is needed");
  keep_devices(draft, std::vector<DeviceId>(kept.begin(), kept.end()));
  return draft;
}

namespace {

// "core" of "core 12".
std::string word_of(const Resource& resource) {
  const std::size_t last = resource.name.find_last_not_of("0123456789 ");
  return last == std::string::npos ? "resource" : resource.name.substr(0, last + 1);
}

// Whether no resource, as a bus is, belongs to devices of two memories, and all are of one sort.
bool memories_have_like_resources(const Cluster& cluster) {
  std::vector<SpaceId> space_of(cluster.resources.size());
  for (const Device& device : cluster.devices) {
    for (const ResourceUse& use : device.uses) {
      SpaceId& space = space_of[use.resource.index()];
      if (space.valid() && space != device.space) return false;
      space = device.space;
    }
  }
  const std::string word = word_of(cluster.resources.front());
  return std::ranges::all_of(cluster.resources,
                             [&](const Resource& resource) { return word_of(resource) == word; });
}

}  // namespace

bool are_in_one_memory(const Cluster& cluster) {
  return std::ranges::all_of(cluster.devices, [&](const Device& device) {
    return device.space.valid() && device.space == cluster.devices[0].space;
  });
}

bool are_sets_of_resources(const Cluster& cluster) {
  const bool all_in_spaces = std::ranges::all_of(cluster.devices, [](const Device& device) {
    return !device.uses.empty() && device.space.valid();
  });
  if (cluster.resources.empty() || !all_in_spaces) return false;
  return are_in_one_memory(cluster) ||
         (cluster.interconnect == InterconnectKind::links && memories_have_like_resources(cluster));
}

namespace {

std::size_t used_resources(const Cluster& cluster) {
  std::vector<char> used(cluster.resources.size(), 0);
  for (const Device& device : cluster.devices) {
    for (const ResourceUse& use : device.uses) used[use.resource.index()] = 1;
  }
  return static_cast<std::size_t>(std::ranges::count(used, 1));
}

[[noreturn]] void refuse_for_links(std::size_t count, std::size_t there, const std::string& what) {
  throw std::invalid_argument(
      fmt::format("{} {}s are asked for, but the cluster has only {}, and another one would "
                  "need links that the problem does not state",
                  count, what, there));
}

// Whether the limit of replicas is just the number of resources, each of which one device takes
// whole: then it forbids nothing, and is not to forbid anything where there are more or fewer of
// them.
bool replicas_follow_resources(const ProblemDraft& draft) {
  const Cluster& cluster = draft.cluster;
  const auto whole = [&](const ResourceUse& use) {
    return use.amount == cluster.resources[use.resource.index()].capacity;
  };
  return std::cmp_equal(draft.rules.max_replicas, used_resources(cluster)) &&
         std::ranges::all_of(cluster.devices, [&](const Device& device) {
           return std::ranges::all_of(device.uses, whole);
         });
}

ProblemDraft with_resource_count(ProblemDraft draft, std::size_t count) {
  Cluster& cluster = draft.cluster;
  const bool replicas_follow = replicas_follow_resources(draft);
  const std::size_t there = cluster.resources.size();
  if (count > there && !are_in_one_memory(cluster))
    refuse_for_links(count, there, countable_word(cluster));
  const std::vector<Device> devices = cluster.devices;
  for (std::size_t first = there; first < count; first += there) {
    for (std::size_t i = 0; i < there && first + i < count; ++i) {
      Resource copy = cluster.resources[i];
      copy.name = fmt::format("{} of copy {}", copy.name, first / there + 1);
      cluster.resources.push_back(std::move(copy));
    }
    for (Device copy : devices) {
      for (ResourceUse& use : copy.uses) use.resource = ResourceId{use.resource.index() + first};
      copy.name = name_of_copy(draft, copy.name);
      cluster.devices.push_back(std::move(copy));
    }
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    const bool within = std::ranges::all_of(cluster.devices[i].uses, [&](const ResourceUse& use) {
      return use.resource.index() < count;
    });
    if (within) kept.push_back(i);
  }
  draft = with_devices(std::move(draft), kept);
  if (replicas_follow) draft.rules.max_replicas = static_cast<int>(used_resources(draft.cluster));
  return draft;
}

}  // namespace

namespace {

// Which device stands for the copy where the two are joined: one that is joined to the original
// both ways, best of its node, then of its kind.
std::optional<std::size_t> twin_of(const Cluster& cluster, std::size_t device) {
  const Device& original = cluster.devices[device];
  const auto joined = [&](std::size_t other) {
    const auto has = [&](std::size_t from, std::size_t to) {
      return std::ranges::any_of(cluster.links, [&](const Link& link) {
        return link.from.index() == from && link.to.index() == to;
      });
    };
    return has(device, other) && has(other, device);
  };
  std::optional<std::size_t> best;
  int best_rank = -1;
  for (std::size_t other = 0; other < cluster.devices.size(); ++other) {
    if (other == device || !joined(other)) continue;
    const Device& candidate = cluster.devices[other];
    const int rank = (!original.node.empty() && candidate.node == original.node ? 2 : 0) +
                     (candidate.kind == original.kind ? 1 : 0);
    if (rank > best_rank) std::tie(best, best_rank) = std::pair(other, rank);
  }
  return best;
}

void copy_links(Cluster& cluster, DeviceId device, DeviceId copy, DeviceId twin) {
  const std::vector<Link> links = cluster.links;
  const auto add = [&](Link link, DeviceId from, DeviceId to) {
    link.from = from;
    link.to = to;
    cluster.links.push_back(link);
  };
  for (const Link& link : links) {
    if (link.from == device) add(link, copy, link.to);
    if (link.to == device) add(link, link.from, copy);
    if (link.from == device && link.to == twin) add(link, device, copy);
    if (link.from == twin && link.to == device) add(link, copy, device);
  }
}

// A table of link times with a row and a column more.
std::vector<double> with_copied_entries(const std::vector<double>& table, std::size_t devices,
                                        std::size_t device, std::size_t twin) {
  if (table.empty()) return {};
  const auto original = [&](std::size_t number) { return number == devices ? device : number; };
  const auto entry = [&](std::size_t from, std::size_t to) {
    const bool joined = from != to && original(from) == original(to);
    if (joined)
      return from == device ? table[device * devices + twin] : table[twin * devices + device];
    return table[original(from) * devices + original(to)];
  };
  std::vector<double> entries;
  for (std::size_t from = 0; from <= devices; ++from) {
    for (std::size_t to = 0; to <= devices; ++to) entries.push_back(entry(from, to));
  }
  return entries;
}

}  // namespace

ProblemDraft with_copy_of(ProblemDraft draft, DeviceId device) {
  Cluster& cluster = draft.cluster;
  Device copy = cluster.devices[device.index()];
  if (!copy.uses.empty()) {
    throw std::invalid_argument(
        fmt::format("device '{}' shares resources with others: vary their number", copy.name));
  }
  const std::size_t count = cluster.devices.size();
  if (cluster.interconnect == InterconnectKind::links) {
    const std::optional<std::size_t> twin = twin_of(cluster, device.index());
    if (!twin) {
      throw std::invalid_argument(
          fmt::format("another '{}' would need links that the problem does not state", copy.name));
    }
    copy_links(cluster, device, DeviceId{count}, DeviceId{*twin});
    for (Tensor& tensor : draft.tensors) {
      tensor.link_times = with_copied_entries(tensor.link_times, count, device.index(), *twin);
    }
  }
  copy.name = name_of_copy(draft, copy.name);
  cluster.devices.push_back(std::move(copy));
  return draft;
}

ProblemDraft with_links(ProblemDraft draft, double latency, double bandwidth) {
  Cluster& cluster = draft.cluster;
  const auto has_table = [](const Tensor& tensor) { return !tensor.link_times.empty(); };
  if (cluster.links.empty() || std::ranges::any_of(draft.tensors, has_table)) {
    throw std::invalid_argument("the transfer times of this problem do not come from links");
  }
  const bool nodes = std::ranges::any_of(cluster.devices,
                                         [](const Device& device) { return !device.node.empty(); });
  for (Link& link : cluster.links) {
    const std::string& node = cluster.devices[link.from.index()].node;
    const bool inside = !node.empty() && node == cluster.devices[link.to.index()].node;
    if (nodes && !inside) continue;
    link.latency = latency;
    link.bandwidth = bandwidth;
  }
  return draft;
}

std::size_t countable_devices(const ProblemDraft& draft) {
  if (are_sets_of_resources(draft.cluster)) return used_resources(draft.cluster);
  return static_cast<std::size_t>(
      std::count_if(draft.cluster.devices.begin(), draft.cluster.devices.end(),
                    [&](const Device& device) { return !on_host(draft, device); }));
}

std::string countable_word(const Cluster& cluster) {
  if (!are_sets_of_resources(cluster)) {
    return cluster.interconnect == InterconnectKind::host ? "accelerator" : "device";
  }
  return word_of(cluster.resources.front());
}

ProblemDraft with_device_count(ProblemDraft draft, std::size_t count) {
  const std::size_t there = countable_devices(draft);
  if (count == 0) throw std::invalid_argument("at least one device is needed");
  if (are_sets_of_resources(draft.cluster)) return with_resource_count(std::move(draft), count);
  if (count > there && (draft.cluster.interconnect == InterconnectKind::links || there == 0)) {
    refuse_for_links(count, there, "device");
  }
  std::vector<std::size_t> kept;
  std::size_t counted = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < draft.cluster.devices.size(); ++i) {
    const bool counts = !on_host(draft, draft.cluster.devices[i]);
    if (counts && ++counted > count) continue;
    if (counts) last = i;
    kept.push_back(i);
  }
  for (std::size_t i = there; i < count; ++i) {
    Device copy = draft.cluster.devices[last];
    copy.name = name_of_copy(draft, copy.name);
    draft.cluster.devices.push_back(std::move(copy));
    kept.push_back(draft.cluster.devices.size() - 1);
  }
  if (kept.size() < draft.cluster.devices.size()) return with_devices(std::move(draft), kept);
  return draft;
}

}  // namespace placewright
