#include "formats/trace_file.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/file_schemas.h"
#include "formats/json_schema.h"
#include "problem/largest_number.h"

namespace placewright {

template <>
inline constexpr auto kFields<TraceArrival> =
    std::tuple{required("model", &TraceArrival::model),
               optional("name", &TraceArrival::name),
               required("time", &TraceArrival::time),
               optional("weight", &TraceArrival::weight),
               optional("deadline", &TraceArrival::deadline).or_null(),
               optional("cancelled", &TraceArrival::cancelled).or_null()};

namespace {

constexpr auto kTraceFields =
    std::tuple{optional(
                   "name", [](auto& file) -> auto& { return file.trace.name; }),
               required("models", &TraceFile::models)
                   .where(R"({"minItems": 1})")
                   .says("Problem files, from the trace's folder"),
               optional("cluster", &TraceFile::cluster),
               required(
                   "arrivals", [](auto& file) -> auto& { return file.trace.arrivals; })
                   .where(R"({"minItems": 1})")};

// What an arrival says becomes part of a problem, which has no larger numbers.
void check_numbers(JsonValue record) {
  for (const std::string_view key : {"time", "weight", "deadline", "cancelled"}) {
    const auto value = record.find(key);
    if (!value || value->is_null() || value->number() <= kLargestNumber) continue;
    value->fail(
        fmt::format("expected a number up to {}, found {}", kLargestNumber, value->number()));
  }
}

struct TraceReading {
  UnknownKeys unknown = {};
  std::map<std::string, int> copies = {};  // of each model so far

  void read(JsonValue record, TraceArrival& arrival) {
    read_record(record, arrival, *this);
    check_numbers(record);
    const int number = ++copies[arrival.model];
    if (!record.find("name")) arrival.name = fmt::format("{} {}", arrival.model, number);
    if (arrival.cancelled && *arrival.cancelled < arrival.time) {
      record.at("cancelled").fail("cancelled before it arrives");
    }
  }
};

std::string beside(const std::string& path, std::string_view name) {
  const std::filesystem::path named(name);
  if (named.is_absolute() || path == "-") return std::string(name);
  return (std::filesystem::path(path).parent_path() / named).string();
}

}  // namespace

bool is_trace(std::string_view text, const std::string& origin) {
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  if (!root.is_object()) return false;
  const auto kind = root.find("placewright");
  return kind && kind->is_text() && kind->text() == "trace";
}

TraceFile parse_trace(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const JsonValue root = document.root();
  TraceFile file;
  file.trace.name = std::filesystem::path(path).stem().string();
  TraceReading context;
  read_file<kTraceFields>(root, "trace", file, context);
  if (file.models.empty()) root.at("models").fail("expected at least one file");
  if (file.trace.arrivals.empty()) root.at("arrivals").fail("expected at least one arrival");
  for (std::string& model : file.models) model = beside(path, model);
  if (root.find("cluster")) file.cluster = beside(path, file.cluster);
  file.warnings = context.unknown.warnings();
  return file;
}

Schema trace_schema() {
  Schema schema = begun_schema("trace", "A trace file", "trace");
  add_fields<TraceFile>(schema, kTraceFields, NameSchemas{});
  return schema;
}

}  // namespace placewright
