#include "formats/serving_hosts.h"

#include <set>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/json_fields.h"
#include "formats/printable.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

constexpr std::string_view kHostsKind = "llama-hosts";

struct EntryForm {};  // may be negative

struct HostsReading {
  UnknownKeys unknown = {};

  void read(EntryForm, JsonValue entry, HostTimes& times) const { times.entry = entry.number(); }
};

}  // namespace

template <>
inline constexpr auto kFields<HostTimes> = std::tuple{
    required("layer", &HostTimes::layer), optional("experts_here", &HostTimes::experts_here),
    required("entry", &HostTimes::entry, EntryForm{}), required("rest", &HostTimes::rest)};

template <>
inline constexpr auto kFields<ServingHost> =
    std::tuple{required("name", &ServingHost::name), optional("endpoint", &ServingHost::endpoint),
               optional("memory", &ServingHost::memory), optional("times", &ServingHost::times)};

template <>
inline constexpr auto kFields<HostsFile> =
    std::tuple{required("hosts", &HostsFile::hosts).on_line().in(Lines::bracket_behind),
               optional("measured", &HostsFile::measured).on_line()};

HostsFile read_hosts(std::string_view text, const std::string& path) {
  const JsonDocument document(text, input_name(path));
  const JsonValue root = document.root();
  HostsFile file;
  HostsReading context;
  read_file<kFields<HostsFile>>(root, kHostsKind, file, context);
  if (file.hosts.empty()) root.at("hosts").fail("expected at least one host");
  std::set<std::string> names;
  std::set<std::string> endpoints;
  auto place = root.at("hosts").elements().begin();
  for (const ServingHost& host : file.hosts) {
    if (!names.insert(host.name).second) {
      (*place).at("name").fail(fmt::format("two hosts are called '{}'", printable(host.name)));
    }
    if (!endpoints.insert(host.endpoint).second) {
      (*place).fail(host.is_here() ? std::string("two hosts without an endpoint: only one can be "
                                                 "this machine")
                                   : fmt::format("two hosts have the endpoint '{}'",
                                                 printable(host.endpoint)));
    }
    if (!host.is_here() && (host.endpoint.find(':') == std::string::npos ||
                            host.endpoint.find(',') != std::string::npos)) {
      (*place).at("endpoint").fail("expected HOST:PORT of an RPC server");
    }
    if (!file.measured.empty()) (void)(*place).at("times");
    ++place;
  }
  file.warnings = context.unknown.warnings();
  return file;
}

std::string write_hosts(const HostsFile& file) {
  std::string text = begun_file(std::string(kHostsKind));
  append_fields(text, file, kFields<HostsFile>, WritingContext{});
  text += "\n}\n";
  return text;
}

}  // namespace placewright
