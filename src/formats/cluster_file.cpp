#include "formats/cluster_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/file_schemas.h"
#include "formats/input_error.h"
#include "formats/json_schema.h"
#include "formats/quantity.h"
#include "formats/text_file.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

// A member that may have a unit in the file, of this dimension.
template <class Record>
struct QuantityForm {
  double Record::*member;
  Dimension dimension;
};
template <class Record>
QuantityForm(double Record::*, Dimension) -> QuantityForm<Record>;

}  // namespace

template <>
inline constexpr auto kFields<DeviceKind> = std::tuple{
    required("name", &DeviceKind::name).not_empty(), optional("host", &DeviceKind::on_host)};

template <>
inline constexpr auto kFields<Resource> =
    std::tuple{required("name", &Resource::name).not_empty(),
               stated("capacity", &Resource::capacity).positive()};

template <>
inline constexpr auto kFields<Space> = std::tuple{
    required("name", &Space::name).not_empty(),
    optional("memory", &Space::memory, QuantityForm{&Space::memory, Dimension::bytes}).or_null()};

template <>
inline constexpr auto kFields<ResourceUse> =
    std::tuple{required("resource", &ResourceUse::resource),
               stated("amount", &ResourceUse::amount).positive()};

template <>
inline constexpr auto kFields<Device> = std::tuple{
    required("name", &Device::name).not_empty(),
    required("kind", &Device::kind),
    optional("memory", &Device::memory, QuantityForm{&Device::memory, Dimension::bytes}).or_null(),
    optional("lanes", &Device::lanes).says("How many ops the device runs at once"),
    optional("send_overhead", &Device::send_overhead,
             QuantityForm{&Device::send_overhead, Dimension::time}),
    optional("receive_overhead", &Device::receive_overhead,
             QuantityForm{&Device::receive_overhead, Dimension::time}),
    optional("uses", &Device::uses)
        .says("The amounts of shared resources that the device takes while it runs an op"),
    optional("space", &Device::space).says("The memory space of the device; absent: its own"),
    optional("node", &Device::node).says("The machine of the device; version 3"),
    optional("price", &Device::price).says("Price per hour, in any currency")};

template <>
inline constexpr auto kFields<Link> =
    std::tuple{required("from", &Link::from), required("to", &Link::to),
               stated("latency", &Link::latency, QuantityForm{&Link::latency, Dimension::time}),
               optional("bandwidth", &Link::bandwidth,
                        QuantityForm{&Link::bandwidth, Dimension::bytes_per_time})
                   .positive()
                   .says("Bytes per time unit; null or absent: without limit")
                   .or_null()};

namespace {

// The links as a file has them: those between all pairs first.
struct UniformLinks {
  double latency = 0;
  double bandwidth = kInfinity;

  friend bool operator==(const UniformLinks&, const UniformLinks&) = default;
};
struct Interconnect {
  InterconnectKind kind = InterconnectKind::links;
  std::optional<UniformLinks> all = {};
  std::optional<UniformLinks> inside = {};  // between devices of one node; absent: as all
  std::vector<Link> links = {};
};

}  // namespace

template <>
inline constexpr auto kFields<UniformLinks> =
    std::tuple{stated("latency", &UniformLinks::latency,
                      QuantityForm{&UniformLinks::latency, Dimension::time}),
               optional("bandwidth", &UniformLinks::bandwidth,
                        QuantityForm{&UniformLinks::bandwidth, Dimension::bytes_per_time})
                   .positive()
                   .says("Bytes per time unit; null or absent: without limit")
                   .or_null()};

template <>
inline constexpr auto kFields<Interconnect> =
    std::tuple{required("kind", &Interconnect::kind),
               optional("all", &Interconnect::all).says("Joins every ordered pair of devices"),
               optional("inside", &Interconnect::inside)
                   .says("Joins the devices of one node in place of `all`; version 3"),
               optional("links", &Interconnect::links).in(Lines::bracket_below)};

template <>
inline constexpr auto kFields<PeakRates> = std::tuple{
    required("flops", &PeakRates::flops, QuantityForm{&PeakRates::flops, Dimension::flops_per_time})
        .positive()
        .says("Operations in f32 per second: 2e12, or 2TFLOPS as text"),
    required("bandwidth", &PeakRates::bandwidth,
             QuantityForm{&PeakRates::bandwidth, Dimension::bytes_per_time})
        .positive()
        .says("Bandwidth of its memory, in bytes per second or as 100GB/s in text"),
    optional("launch", &PeakRates::launch, QuantityForm{&PeakRates::launch, Dimension::time})
        .says("Seconds before an op starts, or 5us as text"),
    optional("half_flops", &PeakRates::half_flops,
             QuantityForm{&PeakRates::half_flops, Dimension::flops_per_time})
        .positive()
        .says("Operations of 16-bit matrix products per second; absent: as in f32")};

namespace {

struct RateReading {
  UnknownKeys& unknown;

  template <class Record>
  void read(const QuantityForm<Record>& form, JsonValue json, Record& record) const {
    double& value = record.*form.member;
    value = amount_in(json, TimeUnit::seconds, form.dimension);
    if (value == 0 && form.dimension != Dimension::time) json.fail("a rate must be more than 0");
  }
};

// A cluster may have a name, which nobody reads.
constexpr auto kOwnFields = std::tuple{
    optional("name", &ClusterFile::file),
    optional("rates", &ClusterFile::rates)
        .says("Rates from which times are estimated, for a kind that is not in the catalogue")};

std::string_view pattern_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "([kMGT]?B|[KMGT]iB)";
    case Dimension::time:
      return "(ns|us|µs|ms|s)";
    case Dimension::bytes_per_time:
      return "([kMGT]?B|[KMGT]iB)/s";
    case Dimension::flops_per_time:
      break;
  }
  return "[GTP]FLOPS";
}

struct ClusterSchema : NameSchemas {
  using NameSchemas::schema;

  template <class Record>
  Schema schema(const QuantityForm<Record>& form) const {
    return {{"type", {"number", "string"}},
            {"minimum", 0},
            {"pattern", fmt::format("^[0-9.eE+-]+ ?{}$", pattern_of(form.dimension))}};
  }
  Schema schema(Identity<UniformLinks> /*type*/) const {
    Schema links = record_schema<UniformLinks>(*this);
    links["type"] = {"object", "string"};
    return described(std::move(links), "The cost of a link, or the name of a link in the catalogue",
                     "");
  }
  Schema schema(InterconnectForm /*form*/) const { return record_schema<Interconnect>(*this); }
};

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

bool inside_a_node(const Device& one, const Device& other) {
  return !one.node.empty() && one.node == other.node;
}

// What a file says instead of `cluster.links`: where they begin with a link for every ordered pair,
// one cost for pairs inside a node and one for the others, these two and the rest.
Interconnect interconnect_of(const Cluster& cluster) {
  const std::size_t count = cluster.devices.size();
  Interconnect as_listed{.kind = cluster.interconnect, .links = cluster.links};
  if (count < 2 || cluster.links.size() < count * (count - 1)) return as_listed;
  Interconnect regular{.kind = cluster.interconnect};
  std::size_t next = 0;
  for (const DeviceId from : ids<DeviceId>(count)) {
    for (const DeviceId to : ids<DeviceId>(count)) {
      if (from == to) continue;
      const Link& link = cluster.links[next++];
      auto& shared = inside_a_node(cluster.devices[from.index()], cluster.devices[to.index()])
                         ? regular.inside
                         : regular.all;
      if (!shared) shared = {link.latency, link.bandwidth};
      if (link != Link{from, to, shared->latency, shared->bandwidth}) return as_listed;
    }
  }
  if (!regular.all) regular.all = regular.inside;
  if (regular.inside == regular.all) regular.inside.reset();
  regular.links.assign(cluster.links.begin() + static_cast<std::ptrdiff_t>(next),
                       cluster.links.end());
  return regular;
}

std::vector<Link> links_of(const Interconnect& interconnect, const std::vector<Device>& devices) {
  const std::size_t count = devices.size();
  std::vector<Link> links;
  if (interconnect.all || interconnect.inside) links.reserve(count * count);
  for (const DeviceId from : ids<DeviceId>(count)) {
    for (const DeviceId to : ids<DeviceId>(count)) {
      const bool inside =
          interconnect.inside && inside_a_node(devices[from.index()], devices[to.index()]);
      const auto& shared = inside ? interconnect.inside : interconnect.all;
      if (from != to && shared) links.push_back({from, to, shared->latency, shared->bandwidth});
    }
  }
  links.insert(links.end(), interconnect.links.begin(), interconnect.links.end());
  return links;
}

[[noreturn]] void fail_without_unit(JsonValue json) {
  json.fail("a quantity with a unit needs a problem whose times have one");
}

std::string_view described(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "an amount of memory";
    case Dimension::time:
      return "a time";
    case Dimension::bytes_per_time:
      return "a bandwidth";
    case Dimension::flops_per_time:
      break;
  }
  return "a rate of operations";
}

void check_kinds_of_rates(JsonValue root, const Cluster& cluster) {
  const std::optional<JsonValue> rates = root.find("rates");
  if (!rates) return;
  const Numbers kinds = numbers_by_name(cluster.kinds);
  for (const JsonValue::Member& each : rates->members()) {
    if (kinds.contains(each.key)) continue;
    each.value.fail(fmt::format("no kind is called '{}'", each.key));
  }
}

std::vector<DeviceKind> kinds_named_in(JsonValue devices) {
  std::vector<DeviceKind> kinds;
  for (const JsonValue device : devices.elements()) {
    const std::string name(device.at("kind").text());
    const auto named = [&](const DeviceKind& kind) { return kind.name == name; };
    if (std::none_of(kinds.begin(), kinds.end(), named)) kinds.push_back({name});
  }
  return kinds;
}

// Devices that give no memory and share none have that of their kind in the catalogue.
void take_catalogue_memory(Cluster& cluster) {
  for (Device& device : cluster.devices) {
    if (device.space.valid()) continue;
    const CatalogueDevice* known = catalogue().device(cluster.kinds[device.kind.index()].name);
    if (known != nullptr && device.memory == kInfinity) device.memory = known->memory;
  }
}

// What names mean in a cluster that is being read.
class ClusterReading {
 public:
  ClusterReading(const Cluster& cluster, UnknownKeys& unknown_keys, TimeUnit unit)
      : unknown(unknown_keys), cluster_(cluster), unit_(unit) {}

  UnknownKeys& unknown;

  template <class Record>
  void read(const QuantityForm<Record>& form, JsonValue json, Record& record) const {
    record.*form.member = amount_in(json, unit_, form.dimension);
  }
  // All links by the name that the catalogue has for such a link.
  void read(JsonValue json, UniformLinks& links) {
    if (!json.is_text()) return read_record(json, links, *this);
    const CatalogueLink* known = catalogue().link(json.text());
    if (known == nullptr) {
      json.fail(fmt::format("the catalogue has no link '{}' ('placewright devices --catalogue')",
                            json.text()));
    }
    if (unit_ == TimeUnit::none) fail_without_unit(json);
    const double seconds = milliseconds_in(unit_) / 1000;
    links = {known->latency / seconds, known->bandwidth * seconds};
  }

  void read(JsonValue name, KindId& kind) {
    if (kinds_.empty()) kinds_ = numbers_by_name(cluster_.kinds);
    kind = KindId{number_of(kinds_, name, "kind")};
  }
  void read(JsonValue name, DeviceId& device) {
    if (devices_.empty()) devices_ = numbers_by_name(cluster_.devices);
    device = DeviceId{number_of(devices_, name, "device")};
  }
  void read(JsonValue name, ResourceId& resource) {
    if (resources_.empty()) resources_ = numbers_by_name(cluster_.resources);
    resource = ResourceId{number_of(resources_, name, "resource")};
  }
  void read(JsonValue name, SpaceId& space) {
    if (spaces_.empty()) spaces_ = numbers_by_name(cluster_.spaces);
    space = SpaceId{number_of(spaces_, name, "memory space")};
  }
  void read(InterconnectForm, JsonValue object, Cluster& cluster) {
    Interconnect interconnect;
    read_record(object, interconnect, *this);
    cluster.interconnect = interconnect.kind;
    cluster.links = links_of(interconnect, cluster.devices);
  }

 private:
  const Cluster& cluster_;
  TimeUnit unit_;
  Numbers kinds_;
  Numbers resources_;
  Numbers spaces_;
  Numbers devices_;
};

// What ids are called in a cluster that is being written.
struct ClusterWriting {
  const Cluster& cluster;

  void append(std::string& text, KindId kind) const {
    append_quoted(text, cluster.kinds[kind.index()].name);
  }
  void append(std::string& text, DeviceId device) const {
    append_quoted(text, cluster.devices[device.index()].name);
  }
  void append(std::string& text, ResourceId resource) const {
    append_quoted(text, cluster.resources[resource.index()].name);
  }
  void append(std::string& text, SpaceId space) const {
    append_quoted(text, cluster.spaces[space.index()].name);
  }
  void append(InterconnectForm, std::string& text, const Cluster& written) const {
    append_record(text, interconnect_of(written), *this);
  }
};

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
  const auto moved = [&](const std::vector<double>& old, double missing) {
    std::vector<double> numbers(old_kinds.size(), missing);
    for (std::size_t kind = 0; kind < old_kinds.size(); ++kind) {
      if (*old_kinds[kind] < old.size()) numbers[kind] = old[*old_kinds[kind]];
    }
    return numbers;
  };
  for (Op& op : draft.ops) {
    op.time = moved(op.time, kUnsupported);
    if (!op.share.empty()) op.share = moved(op.share, 1);
  }
  for (Tensor& tensor : draft.tensors) {
    std::vector<CutOverhead> cuts;
    for (std::size_t kind = 0; kind < old_kinds.size(); ++kind) {
      const auto cut = std::ranges::find(tensor.cuts, KindId{*old_kinds[kind]}, &CutOverhead::kind);
      if (cut != tensor.cuts.end()) cuts.push_back({KindId{kind}, cut->send, cut->receive});
    }
    tensor.cuts = std::move(cuts);
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

double amount_in(JsonValue json, TimeUnit unit, std::optional<Dimension> expected) {
  if (!json.is_text()) return json.amount();
  const std::optional<Quantity> quantity = quantity_in(json.text());
  if (!quantity) {
    json.fail(
        fmt::format("'{}' is not an amount: expected a number, or one with a unit as in "
                    "\"80GB\", \"16GB/s\", \"5us\"",
                    json.text()));
  }
  if (expected && quantity->dimension != *expected) {
    json.fail(fmt::format("'{}' is {}, expected {}", json.text(), described(quantity->dimension),
                          described(*expected)));
  }
  const std::optional<double> amount = in_unit(*quantity, unit);
  if (!amount) fail_without_unit(json);
  return *amount;
}

Cluster cluster_from_json(JsonValue object, UnknownKeys& unknown, TimeUnit unit) {
  const auto devices = object.find("devices");
  if (devices) check_device_count(*devices);
  Cluster cluster;
  if (devices && !object.find("kinds")) cluster.kinds = kinds_named_in(*devices);
  ClusterReading context(cluster, unknown, unit);
  read_fields(object, cluster, kFields<Cluster>, context);
  return cluster;
}

void add_cluster_schema(Schema& file) {
  add_fields<Cluster>(file, kFields<Cluster>, ClusterSchema{});
  file["allOf"] = Schema::parse(R"([
      {"description": "What devices share needs version 2 of a file",
       "if": {"properties": {"version": {"maximum": 1}}, "required": ["version"]},
       "then": {"properties": {"resources": {"maxItems": 0}, "spaces": {"maxItems": 0}}}},
      {"description": "Nodes need version 3",
       "if": {"properties": {"version": {"maximum": 2}}, "required": ["version"]},
       "then": {"properties": {"devices":
           {"items": {"properties": {"node": {"maxLength": 0}}}}}}}])");
}

Schema cluster_schema() {
  Schema schema = begun_schema("cluster", "A cluster file", "cluster", kNewestVersion);
  add_cluster_schema(schema);
  add_fields<ClusterFile>(schema, kOwnFields, ClusterSchema{});
  return schema;
}

void append_cluster(std::string& text, const Cluster& cluster) {
  append_fields(text, cluster, kFields<Cluster>, ClusterWriting{cluster});
}

namespace {

// A file that is not of the expected kind.
std::string wrong_kind(std::string_view kind, std::string_view expected) {
  static constexpr std::array kKnown{"problem", "cluster", "plan",     "run",
                                     "trace",   "parts",   "catalogue"};
  // Few verbs take these, so which ones is the way on.
  static constexpr std::array kTraining{
      std::pair{"training-problem", "this is a training problem, which only plan and whatif take"},
      std::pair{"training-plan",
                "this is a training plan, which only check, simulate and export take"}};
  for (const auto& [training, words] : kTraining) {
    if (kind == training) return fmt::format("expected a {} file; {}", expected, words);
  }
  const bool known = std::ranges::find(kKnown, kind) != kKnown.end();
  return fmt::format("{}, expected a {} file",
                     known ? fmt::format("this is a {} file", kind)
                           : fmt::format("no kind of file is called '{}'", kind),
                     expected);
}

}  // namespace

int check_header(JsonValue root, std::string_view kind, int newest) {
  const JsonValue stated = root.at("placewright");
  if (stated.text() != kind) {
    stated.fail(wrong_kind(stated.text(), kind));
  }
  const JsonValue version = root.at("version");
  if (!version.is_integer() || version.number() < 1 || version.number() > newest) {
    version.fail(
        fmt::format("the version of this {} file is not known: {} read", kind,
                    newest == 1 ? "version 1 is" : fmt::format("versions 1 to {} are", newest)));
  }
  return static_cast<int>(version.number());
}

void check_version(JsonValue root, int version, int needed) {
  if (version >= needed) return;
  root.at("version").fail(
      needed == kVersionOfSharing
          ? "resources, memory spaces, shares and cuts need version 2 of the file"
          : "nodes and the schedule of a pipeline need version 3 of the file");
}

std::string begun_file(const std::string& kind, int version) {
  std::string text = "{";
  append_fields(text, FileHeader{kind, version}, kHeaderFields, WritingContext{});
  return text;
}

int version_of(const Cluster& cluster) {
  const auto states_node = [](const Device& device) { return !device.node.empty(); };
  if (std::ranges::any_of(cluster.devices, states_node)) return kVersionOfNodes;
  return cluster.resources.empty() && cluster.spaces.empty() ? 1 : kVersionOfSharing;
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

ClusterFile parse_cluster(std::string_view text, const std::string& origin, TimeUnit unit) {
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  const int version = check_header(root, "cluster", kNewestVersion);
  UnknownKeys unknown;
  static constexpr auto kKeys = keys_of(kHeaderFields, kOwnFields, kFields<Cluster>);
  unknown.check(root, kKeys);
  ClusterFile file;
  file.cluster = cluster_from_json(root, unknown, unit);
  check_version(root, version, version_of(file.cluster));
  RateReading rates{unknown};
  read_fields(root, file, kOwnFields, rates);
  check_kinds_of_rates(root, file.cluster);
  if (file.cluster.devices.empty()) root.at("devices").fail("the cluster has no devices");
  take_catalogue_memory(file.cluster);
  file.file = origin;
  file.digest = digest_of(text);
  file.warnings = unknown.warnings();
  return file;
}

ClusterFile read_cluster(const std::string& path, TimeUnit unit) {
  return parse_cluster(read_whole(path), input_name(path), unit);
}

std::optional<PeakRates> rates_of(const ClusterFile& cluster, const std::string& kind) {
  const auto own = cluster.rates.find(kind);
  if (own != cluster.rates.end()) return own->second;
  const CatalogueDevice* known = catalogue().device(kind);
  return known != nullptr ? std::optional(known->rates) : std::nullopt;
}

std::string write_cluster(const Cluster& cluster) {
  std::string text = begun_file("cluster", version_of(cluster));
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
