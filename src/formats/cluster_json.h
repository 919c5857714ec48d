// What our own files share: how they begin, and of cluster and problem files the kinds, devices and
// interconnect.

#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "formats/cluster_file.h"
#include "formats/json_fields.h"
#include "formats/quantity.h"

namespace placewright {

// Tables by pairs of devices grow with the square: this many devices take about 200 MB.
inline constexpr std::size_t kMostDevices = 2048;

// Throws where a file's list of devices is longer.
void check_device_count(JsonValue devices);

// Our own files say what they are: {"placewright": kind, "version": 1, ...}. Cluster and problem
// files have a newer version where they state what older readers would misunderstand: what devices
// share (resources, memory spaces, cut costs by tensor) is version 2, nodes and the schedule of a
// pipeline are version 3.
struct FileHeader {
  std::string kind;
  int version = 1;
};
inline constexpr auto kHeaderFields = std::tuple{required("placewright", &FileHeader::kind),
                                                 required("version", &FileHeader::version)};

inline constexpr int kVersionOfSharing = 2;
inline constexpr int kVersionOfNodes = 3;
inline constexpr int kNewestVersion = 3;

// Its version. Throws where the file is of another kind, or newer than the newest that is read.
int check_header(JsonValue root, std::string_view kind, int newest = 1);

// All of a file of one version: its header, the keys that it may have, its fields.
template <const auto& kOf, class Record, class Context>
void read_file(JsonValue root, std::string_view kind, Record& record, Context& context) {
  check_header(root, kind);
  static constexpr auto kKeys = keys_of(kHeaderFields, kOf);
  context.unknown.check(root, kKeys);
  read_fields(root, record, kOf, context);
}
// Throws where a file states what only a later version has.
void check_version(JsonValue root, int version, int needed);

// The open brace and the header.
std::string begun_file(const std::string& kind, int version = 1);

// The oldest version that can state the cluster.
int version_of(const Cluster& cluster);

// The links of a cluster are an object with a short way to join all pairs of devices.
struct InterconnectForm {};
template <>
inline constexpr auto kFields<Cluster> =
    std::tuple{optional("kinds", &Cluster::kinds)
                   .where(R"({"minItems": 1})")
                   .says("Devices of one kind run every op in the same time")
                   .on_line(),
               optional("resources", &Cluster::resources)
                   .says("What several devices use, such as cores; version 2")
                   .on_line(),
               optional("spaces", &Cluster::spaces)
                   .says("Memory that several devices share; version 2")
                   .on_line(),
               required("devices", &Cluster::devices)
                   .where(R"({"minItems": 1, "maxItems": 2048})")
                   .on_line()
                   .in(Lines::bracket_below),
               required("interconnect", &Cluster::links, InterconnectForm{}).on_line()};

// A number as it stands, or a quantity with a unit (quantity.h) as the number for this unit of
// time. Throws for a quantity of another dimension than the expected.
double amount_in(JsonValue json, TimeUnit unit, std::optional<Dimension> expected = {});

// Reads these fields of an object. Without `kinds` the kinds are those that devices name.
Cluster cluster_from_json(JsonValue object, UnknownKeys& unknown, TimeUnit unit);

// Adds them to the schema of a file.
void add_cluster_schema(nlohmann::ordered_json& file);

// Appends them to an open object.
void append_cluster(std::string& text, const Cluster& cluster);

// "'cpu', 'gpu' and 'npu'"
std::string listed(const std::vector<std::string>& names);

}  // namespace placewright
