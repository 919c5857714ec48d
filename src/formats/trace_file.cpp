#include "formats/trace_file.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/json.h"

namespace placewright {
namespace {

std::string beside(const std::string& path, std::string_view name) {
  const std::filesystem::path named(name);
  if (named.is_absolute() || path == "-") return std::string(name);
  return (std::filesystem::path(path).parent_path() / named).string();
}

TraceArrival read_arrival(JsonValue record, std::map<std::string, int>& copies) {
  TraceArrival arrival;
  arrival.model = record.at("model").text();
  arrival.time = record.at("time").amount();
  const int number = ++copies[arrival.model];
  const auto name = record.find("name");
  arrival.name = name ? std::string(name->text()) : fmt::format("{} {}", arrival.model, number);
  if (const auto weight = record.find("weight")) arrival.weight = weight->amount();
  const auto moment = [&](const char* key) -> std::optional<double> {
    const auto value = record.find(key);
    if (!value || value->is_null()) return std::nullopt;
    return value->amount();
  };
  arrival.deadline = moment("deadline");
  arrival.cancelled = moment("cancelled");
  if (arrival.cancelled && *arrival.cancelled < arrival.time) {
    record.at("cancelled").fail("cancelled before it arrives");
  }
  return arrival;
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
  check_header(root, "trace");
  TraceFile file;
  UnknownKeys unknown;
  unknown.check(root, {"placewright", "version", "name", "models", "cluster", "arrivals"});
  const auto name = root.find("name");
  file.trace.name = name ? std::string(name->text()) : std::filesystem::path(path).stem().string();
  for (const JsonValue model : root.at("models").elements()) {
    file.models.push_back(beside(path, model.text()));
  }
  if (file.models.empty()) root.at("models").fail("expected at least one file");
  if (const auto cluster = root.find("cluster")) file.cluster = beside(path, cluster->text());
  std::map<std::string, int> copies;
  for (const JsonValue record : root.at("arrivals").elements()) {
    unknown.check(record, {"model", "name", "time", "weight", "deadline", "cancelled"});
    file.trace.arrivals.push_back(read_arrival(record, copies));
  }
  if (file.trace.arrivals.empty()) root.at("arrivals").fail("expected at least one arrival");
  file.warnings = unknown.warnings();
  return file;
}

}  // namespace placewright
