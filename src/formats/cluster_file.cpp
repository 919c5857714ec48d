#include "formats/cluster_file.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/input_error.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

using Numbers = std::unordered_map<std::string_view, std::size_t>;

template <class Record>
Numbers numbers_by_name(const std::vector<Record>& records) {
  Numbers numbers;
  for (std::size_t i = 0; i < records.size(); ++i) numbers.emplace(records[i].name, i);
  return numbers;
}

template <class Record>
std::vector<std::string> names_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& record : records) names.push_back(record.name);
  return names;
}

std::size_t number_of(const Numbers& numbers, JsonValue name, std::string_view noun) {
  const auto found = numbers.find(name.text());
  if (found == numbers.end()) name.fail(fmt::format("no {} is called '{}'", noun, name.text()));
  return found->second;
}

// Unlimited where the key is absent or null.
double limit(JsonValue object, std::string_view key) {
  const auto value = object.find(key);
  return value && !value->is_null() ? value->amount() : kInfinity;
}

double amount_or(JsonValue object, std::string_view key, double standard) {
  const auto value = object.find(key);
  return value ? value->amount() : standard;
}

Device device_from_json(JsonValue record, const Numbers& kinds, UnknownKeys& unknown) {
  unknown.check(record, {"name", "kind", "memory", "lanes", "send_overhead", "receive_overhead"});
  Device device;
  device.name = record.at("name").text();
  device.kind = KindId{number_of(kinds, record.at("kind"), "kind")};
  device.memory = limit(record, "memory");
  if (const auto lanes = record.find("lanes")) {
    device.lanes = static_cast<int>(lanes->integer(1, std::numeric_limits<int>::max()));
  }
  device.send_overhead = amount_or(record, "send_overhead", 0);
  device.receive_overhead = amount_or(record, "receive_overhead", 0);
  return device;
}

void add_links(Cluster& cluster, JsonValue interconnect, UnknownKeys& unknown) {
  const std::size_t count = cluster.devices.size();
  if (const auto all = interconnect.find("all")) {
    unknown.check(*all, {"latency", "bandwidth"});
    const double latency = amount_or(*all, "latency", 0);
    const double bandwidth = limit(*all, "bandwidth");
    cluster.links.reserve(count * count);
    for (const DeviceId from : ids<DeviceId>(count)) {
      for (const DeviceId to : ids<DeviceId>(count)) {
        if (from != to) cluster.links.push_back({from, to, latency, bandwidth});
      }
    }
  }
  const auto links = interconnect.find("links");
  if (!links) return;
  const Numbers devices = numbers_by_name(cluster.devices);
  for (const JsonValue record : links->elements()) {
    unknown.check(record, {"from", "to", "latency", "bandwidth"});
    cluster.links.push_back({DeviceId{number_of(devices, record.at("from"), "device")},
                             DeviceId{number_of(devices, record.at("to"), "device")},
                             amount_or(record, "latency", 0), limit(record, "bandwidth")});
  }
}

// How many of the first links are what `all` would make of the devices.
std::size_t uniform_links(const Cluster& cluster) {
  const std::size_t count = cluster.devices.size();
  if (count < 2 || cluster.links.size() < count * (count - 1)) return 0;
  std::size_t next = 0;
  for (const DeviceId from : ids<DeviceId>(count)) {
    for (const DeviceId to : ids<DeviceId>(count)) {
      if (from == to) continue;
      const Link expected{from, to, cluster.links[0].latency, cluster.links[0].bandwidth};
      if (cluster.links[next++] != expected) return 0;
    }
  }
  return next;
}

void append_link_cost(std::string& text, const Link& link) {
  text += "\"latency\": ";
  append_number(text, link.latency);
  if (link.bandwidth < kInfinity) {
    text += ", \"bandwidth\": ";
    append_number(text, link.bandwidth);
  }
}

void append_device(std::string& text, const Cluster& cluster, const Device& device) {
  const auto append_unless = [&](std::string_view key, double value, double standard) {
    if (value == standard) return;
    text += fmt::format(", \"{}\": ", key);
    append_number(text, value);
  };
  text += "{\"name\": ";
  append_quoted(text, device.name);
  text += ", \"kind\": ";
  append_quoted(text, cluster.kinds[device.kind.index()].name);
  append_unless("memory", device.memory, kInfinity);
  append_unless("lanes", device.lanes, 1);
  append_unless("send_overhead", device.send_overhead, 0);
  append_unless("receive_overhead", device.receive_overhead, 0);
  text += '}';
}

void append_interconnect(std::string& text, const Cluster& cluster) {
  text += fmt::format("\"interconnect\": {{\"kind\": \"{}\"", name_of(cluster.interconnect));
  const std::size_t uniform = uniform_links(cluster);
  if (uniform > 0) {
    text += ", \"all\": {";
    append_link_cost(text, cluster.links[0]);
    text += '}';
  }
  if (uniform < cluster.links.size()) {
    text += ", \"links\": [";
    for (std::size_t i = uniform; i < cluster.links.size(); ++i) {
      const Link& link = cluster.links[i];
      text += i == uniform ? "\n{\"from\": " : ",\n{\"from\": ";
      append_quoted(text, cluster.devices[link.from.index()].name);
      text += ", \"to\": ";
      append_quoted(text, cluster.devices[link.to.index()].name);
      text += ", ";
      append_link_cost(text, link);
      text += '}';
    }
    text += "\n]";
  }
  text += '}';
}

// For each kind (or device) of the new cluster its number in the old one, where there is one.
template <class Record>
std::vector<std::optional<std::size_t>> old_numbers(const std::vector<Record>& old_records,
                                                    const std::vector<Record>& new_records) {
  const Numbers numbers = numbers_by_name(old_records);
  std::vector<std::optional<std::size_t>> result(new_records.size());
  for (std::size_t i = 0; i < new_records.size(); ++i) {
    const auto found = numbers.find(new_records[i].name);
    if (found != numbers.end()) result[i] = found->second;
  }
  return result;
}

void move_times(ProblemDraft& draft, const ClusterFile& cluster, const std::string& origin) {
  const auto old_kinds = old_numbers(draft.cluster.kinds, cluster.cluster.kinds);
  for (std::size_t kind = 0; kind < old_kinds.size(); ++kind) {
    if (old_kinds[kind]) continue;
    throw InputError(
        cluster.file, fmt::format("/kinds/{}", kind),
        fmt::format("the ops of {} have no times for the kind '{}', only for {}", origin,
                    cluster.cluster.kinds[kind].name, listed(names_of(draft.cluster.kinds))));
  }
  for (Op& op : draft.ops) {
    std::vector<double> time(old_kinds.size(), kUnsupported);
    for (std::size_t kind = 0; kind < old_kinds.size(); ++kind) {
      if (*old_kinds[kind] < op.time.size()) time[kind] = op.time[*old_kinds[kind]];
    }
    op.time = std::move(time);
  }
}

void move_pins(ProblemDraft& draft, const ClusterFile& cluster, const std::string& origin) {
  const Numbers devices = numbers_by_name(cluster.cluster.devices);
  for (Op& op : draft.ops) {
    if (!op.pinned_to.valid()) continue;
    const std::string& name = draft.cluster.devices[op.pinned_to.index()].name;
    const auto found = devices.find(name);
    if (found == devices.end()) {
      throw InputError(cluster.file, "/devices",
                       fmt::format("has no device '{}', to which op '{}' of {} is pinned", name,
                                   op.name, origin));
    }
    op.pinned_to = DeviceId{found->second};
  }
}

void move_tables(ProblemDraft& draft, const ClusterFile& cluster, const std::string& origin) {
  const auto old_devices = old_numbers(draft.cluster.devices, cluster.cluster.devices);
  const std::size_t old_count = draft.cluster.devices.size();
  for (Tensor& tensor : draft.tensors) {
    if (tensor.link_times.size() != old_count * old_count || tensor.link_times.empty()) continue;
    std::vector<double> times;
    times.reserve(old_devices.size() * old_devices.size());
    for (const auto from : old_devices) {
      for (const auto to : old_devices) {
        if (!from || !to) {
          const std::size_t at = static_cast<std::size_t>(
              std::find(old_devices.begin(), old_devices.end(), std::nullopt) -
              old_devices.begin());
          throw InputError(cluster.file, fmt::format("/devices/{}", at),
                           fmt::format("{} gives tables of transfer times between its own devices, "
                                       "and '{}' is none of them",
                                       origin, cluster.cluster.devices[at].name));
        }
        times.push_back(tensor.link_times[*from * old_count + *to]);
      }
    }
    tensor.link_times = std::move(times);
  }
}

}  // namespace

void check_device_count(JsonValue devices) {
  if (devices.elements().size() <= kMostDevices) return;
  devices.fail(fmt::format("has {} devices, at most {} are read", devices.size(), kMostDevices));
}

Cluster cluster_from_json(JsonValue object, UnknownKeys& unknown) {
  Cluster cluster;
  for (const JsonValue record : object.at("kinds").elements()) {
    unknown.check(record, {"name", "host"});
    const auto host = record.find("host");
    cluster.kinds.push_back({std::string(record.at("name").text()), host && host->flag()});
  }
  const Numbers kinds = numbers_by_name(cluster.kinds);
  const JsonValue devices = object.at("devices");
  check_device_count(devices);
  for (const JsonValue record : devices.elements()) {
    cluster.devices.push_back(device_from_json(record, kinds, unknown));
  }

  const JsonValue interconnect = object.at("interconnect");
  unknown.check(interconnect, {"kind", "all", "links"});
  cluster.interconnect = interconnect.at("kind").one_of<InterconnectKind>();
  add_links(cluster, interconnect, unknown);
  return cluster;
}

void append_cluster(std::string& text, const Cluster& cluster) {
  text += "\"kinds\": [";
  for (std::size_t i = 0; i < cluster.kinds.size(); ++i) {
    text += i == 0 ? "{\"name\": " : ", {\"name\": ";
    append_quoted(text, cluster.kinds[i].name);
    text += cluster.kinds[i].on_host ? ", \"host\": true}" : "}";
  }
  text += "],\n\"devices\": [";
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    append_device(text, cluster, cluster.devices[i]);
  }
  text += "\n],\n";
  append_interconnect(text, cluster);
}

void check_header(JsonValue root, std::string_view kind) {
  const JsonValue stated = root.at("placewright");
  if (stated.text() != kind) {
    stated.fail(fmt::format("this is a {} file, expected a {} file", stated.text(), kind));
  }
  const JsonValue version = root.at("version");
  if (!version.is_integer() || version.number() != 1) {
    version.fail(fmt::format("the version of this {} file is not known: version 1 is read", kind));
  }
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += fmt::format("'{}'", names[i]);
  }
  return text;
}

ClusterFile parse_cluster(std::string_view text, const std::string& origin) {
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  check_header(root, "cluster");
  UnknownKeys unknown;
  unknown.check(root, {"placewright", "version", "name", "kinds", "devices", "interconnect"});
  ClusterFile file;
  file.cluster = cluster_from_json(root, unknown);
  if (file.cluster.devices.empty()) root.at("devices").fail("the cluster has no devices");
  file.file = origin;
  file.digest = digest_of(text);
  file.warnings = unknown.warnings();
  return file;
}

ClusterFile read_cluster(const std::string& path) {
  return parse_cluster(read_whole(path), input_name(path));
}

std::string write_cluster(const Cluster& cluster) {
  std::string text = "{\"placewright\": \"cluster\", \"version\": 1,\n";
  append_cluster(text, cluster);
  text += "}\n";
  return text;
}

ProblemDraft with_cluster(ProblemDraft draft, const ClusterFile& cluster,
                          const std::string& origin) {
  move_times(draft, cluster, origin);
  move_pins(draft, cluster, origin);
  move_tables(draft, cluster, origin);
  draft.cluster = cluster.cluster;
  return draft;
}

}  // namespace placewright
