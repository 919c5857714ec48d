#include "formats/run_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/cluster_json.h"
#include "formats/json.h"
#include "formats/json_text.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

// Values are written with all their digits; only the change of unit rounds.
constexpr double kSameValue = 1e-6;

// The keys of each record stand once, in a list that RecordReader and RecordWriter both go through.
// What a list cannot say (names that must exist, an end behind its start) is checked after reading.

template <class Record>
void fields(Record& record, Measured& time) {
  record.derived("valid", time.valid());
  record.amount_if(time.kept > 0, "median", time.median);
  record.amount_if(time.kept > 0, "low", time.low);
  record.amount_if(time.kept > 0, "high", time.high);
  record.count("kept", time.kept);
  record.count("rejected", time.rejected);
  record.flag_or("watched", time.watched, true);
}

template <class Record>
void fields(Record& record, RunModel& model) {
  record.text("name", model.name);
  record.record_or("completion", model.completion);
}

template <class Record>
void fields(Record& record, RunDevice& device) {
  record.text("name", device.name);
  record.amount("busy", device.busy);
}

template <class Record>
void fields(Record& record, RunSegment& segment) {
  record.text("device", segment.device);
  record.count("ops", segment.ops, 1);
  record.text("first_op", segment.first_op);
  record.text("last_op", segment.last_op);
  record.amount("predicted", segment.predicted);
  record.record("measured", segment.measured);
}

template <class Record>
void fields(Record& record, RunTransfer& transfer) {
  record.text("tensor", transfer.tensor);
  record.text("from", transfer.from);
  record.text("to", transfer.to);
  record.amount("bytes", transfer.bytes);
  record.record("measured", transfer.measured);
}

template <class Record>
void fields(Record& record, RunEvent& event) {
  record.device("device", event.device);
  record.place_or("segment", event.segment, record.file().segments.size());
  record.place_or("transfer", event.transfer, record.file().transfers.size());
  record.count("sample", event.sample);
  record.amount("start", event.start);
  record.amount("end", event.end);
}

template <class Record>
void fields(Record& record, RunBaseline& baseline) {
  record.text("name", baseline.name);
  record.record("latency", baseline.latency);
  record.record("per_sample", baseline.per_sample);
}

template <class Record>
void fields(Record& record, RunOutputs& outputs) {
  record.flag("equal", outputs.equal);
  record.amount_or_null("largest_difference", outputs.largest_difference);
  record.amount_or("tolerance", outputs.tolerance);
}

template <class Record>
void fields(Record& record, RunFile& file) {
  record.header();
  record.objective("objective", file.objective);
  record.unit("unit");
  record.amount("predicted", file.predicted);
  record.record("measured", file.measured);
  record.flag("interrupted", file.interrupted);
  record.records("models", file.models);
  record.records("devices", file.devices);
  record.records("segments", file.segments);
  record.records_or("transfers", file.transfers);
  record.records("timeline", file.timeline);  // behind what its events refer to
  record.records("baselines", file.baselines);
  record.record_or("outputs", file.outputs);
}

class RecordWriter {
 public:
  explicit RecordWriter(RunFile& file) : file_(file) {}

  [[nodiscard]] const RunFile& file() const { return file_; }
  [[nodiscard]] Json take() { return std::move(json_); }

  void header() { json_ = {{"placewright", "run"}, {"version", 1}}; }
  void unit(const char* key) { json_[key] = "ms"; }
  void objective(const char* key, Objective& value) { json_[key] = name_of(value); }
  void text(const char* key, std::string& value) { json_[key] = value; }
  void flag(const char* key, bool& value) { json_[key] = value; }
  void flag_or(const char* key, bool& value, bool /*usual*/) { json_[key] = value; }
  void derived(const char* key, bool value) { json_[key] = value; }
  void amount(const char* key, double& value) { json_[key] = value; }
  void amount_if(bool known, const char* key, double& value) {
    json_[key] = known ? Json(value) : Json();
  }
  void amount_or_null(const char* key, std::optional<double>& value) {
    json_[key] = value ? Json(*value) : Json();
  }
  void amount_or(const char* key, std::optional<double>& value) {
    if (value) json_[key] = *value;
  }
  void count(const char* key, std::size_t& value, std::size_t /*least*/ = 0) { json_[key] = value; }
  void device(const char* key, std::size_t& value) { json_[key] = file_.devices[value].name; }
  void place_or(const char* key, std::optional<std::size_t>& value, std::size_t /*size*/) {
    if (value) json_[key] = *value + 1;
  }
  template <class Part>
  void record(const char* key, Part& part) {
    RecordWriter writer(file_);
    fields(writer, part);
    json_[key] = writer.take();
  }
  template <class Part>
  void record_or(const char* key, std::optional<Part>& part) {
    if (part) record(key, *part);
  }
  template <class Part>
  void records(const char* key, std::vector<Part>& parts) {
    Json list = Json::array();
    for (Part& part : parts) {
      RecordWriter writer(file_);
      fields(writer, part);
      list.push_back(writer.take());
    }
    json_[key] = std::move(list);
  }
  template <class Part>
  void records_or(const char* key, std::vector<Part>& parts) {
    records(key, parts);
  }

 private:
  RunFile& file_;
  Json json_ = Json::object();
};

class RecordReader {
 public:
  RecordReader(JsonValue json, RunFile& file, UnknownKeys& unknown)
      : json_(json), file_(file), unknown_(unknown) {}

  [[nodiscard]] const RunFile& file() const { return file_; }

  template <class Part>
  void read(Part& part) {
    fields(*this, part);
    check(part);
    unknown_.check(json_, known_);
  }

  void header() {
    check_header(json_, "run");
    known_.insert(known_.end(), {"placewright", "version"});
  }
  void unit(const char* key) {
    if (at(key).text() != "ms") at(key).fail("expected 'ms'");
  }
  void objective(const char* key, Objective& value) {
    const auto found = value_named<Objective>(at(key).text());
    if (!found || *found == Objective::call_latency) {
      at(key).fail("expected 'latency', 'total-completion' or 'throughput'");
    }
    value = *found;
  }
  void text(const char* key, std::string& value) { value = at(key).text(); }
  void flag(const char* key, bool& value) { value = at(key).flag(); }
  void flag_or(const char* key, bool& value, bool usual) {
    const auto found = find(key);
    value = found ? found->flag() : usual;
  }
  void derived(const char* key, bool /*value*/) { (void)at(key).flag(); }
  void amount(const char* key, double& value) { value = at(key).amount(); }
  void amount_if(bool /*known*/, const char* key, double& value) {
    value = at(key).is_null() ? 0 : at(key).amount();
  }
  void amount_or_null(const char* key, std::optional<double>& value) {
    if (!at(key).is_null()) value = at(key).amount();
  }
  void amount_or(const char* key, std::optional<double>& value) {
    if (const auto found = find(key)) value = found->amount();
  }
  void count(const char* key, std::size_t& value, std::size_t least = 0) {
    value = static_cast<std::size_t>(at(key).integer(static_cast<std::int64_t>(least),
                                                     std::numeric_limits<std::int64_t>::max()));
  }
  void device(const char* key, std::size_t& value) {
    const std::string_view name = at(key).text();
    const auto found = std::find_if(file_.devices.begin(), file_.devices.end(),
                                    [&](const RunDevice& each) { return each.name == name; });
    if (found == file_.devices.end()) at(key).fail(fmt::format("no device is called '{}'", name));
    value = static_cast<std::size_t>(found - file_.devices.begin());
  }
  void place_or(const char* key, std::optional<std::size_t>& value, std::size_t size) {
    const auto found = find(key);
    if (!found) return;
    std::size_t number = 0;
    count(key, number, 1);
    if (number > size) found->fail(fmt::format("there are only {} {}s", size, key));
    value = number - 1;
  }
  template <class Part>
  void record(const char* key, Part& part) {
    RecordReader(at(key), file_, unknown_).read(part);
  }
  template <class Part>
  void record_or(const char* key, std::optional<Part>& part) {
    if (find(key)) record(key, part.emplace());
  }
  template <class Part>
  void records(const char* key, std::vector<Part>& parts) {
    for (const JsonValue each : at(key).elements()) {
      Part part;
      RecordReader(each, file_, unknown_).read(part);
      parts.push_back(std::move(part));
    }
  }
  template <class Part>
  void records_or(const char* key, std::vector<Part>& parts) {
    if (find(key)) records(key, parts);
  }

 private:
  JsonValue at(const char* key) {
    known_.emplace_back(key);
    return json_.at(key);
  }
  std::optional<JsonValue> find(const char* key) {
    known_.emplace_back(key);
    return json_.find(key);
  }

  template <class Part>
  void check(const Part&) const {}
  void check(const Measured& time) const {
    if (time.kept > 0 && json_.at("median").is_null()) {
      json_.at("median").fail("a measurement with runs that were kept has a median");
    }
    if (json_.at("valid").flag() != time.valid()) {
      json_.at("valid").fail(
          fmt::format("{} kept and {} rejected runs say otherwise", time.kept, time.rejected));
    }
  }
  void check(const RunDevice& device) const {
    for (const RunDevice& other : file_.devices) {
      if (other.name != device.name) continue;
      json_.at("name").fail(fmt::format("there are two devices '{}'", device.name));
    }
  }
  void check(const RunEvent& event) const {
    if (event.segment.has_value() == event.transfer.has_value()) {
      json_.fail("expected either a 'segment' or a 'transfer'");
    }
    if (event.end < event.start) json_.at("end").fail("ends before it starts");
  }

  JsonValue json_;
  RunFile& file_;
  UnknownKeys& unknown_;
  std::vector<std::string_view> known_;
};

std::string device_mismatch(const RunFile& run, const Problem& problem) {
  std::vector<std::string> own;
  for (const DeviceId id : problem.devices()) own.push_back(problem.device(id).name);
  for (const RunDevice& device : run.devices) {
    if (std::find(own.begin(), own.end(), device.name) == own.end()) {
      return fmt::format("the run used the device '{}', which the problem does not have",
                         device.name);
    }
  }
  if (run.devices.size() == own.size()) return "";
  return fmt::format("the run had {} devices, the problem has {}", run.devices.size(), own.size());
}

bool listed_in(std::string_view list, std::string_view name) {
  return fmt::format(", {}, ", list).find(fmt::format(", {}, ", name)) != std::string::npos;
}

std::string segment_mismatch(const RunFile& run, const Problem& problem, const Plan& plan) {
  std::unordered_map<std::string_view, OpId> ops;
  for (const OpId op : problem.ops()) ops.emplace(problem.op(op).name, op);
  for (const RunSegment& segment : run.segments) {
    for (const std::string& name : {segment.first_op, segment.last_op}) {
      const auto found = ops.find(name);
      if (found == ops.end()) {
        return fmt::format("the run has the op '{}', which the problem does not have", name);
      }
      const std::string& placed = problem.device(plan.placement[found->second]).name;
      if (!listed_in(segment.device, placed)) {
        return fmt::format("the op '{}' ran on {}, the plan has it on {}", name, segment.device,
                           placed);
      }
    }
  }
  return "";
}

}  // namespace

RunFile parse_run(std::string_view text, const std::string& origin) {
  const JsonDocument document(text, origin);
  UnknownKeys unknown;
  RunFile file;
  RecordReader(document.root(), file, unknown).read(file);
  file.warnings = unknown.warnings();
  return file;
}

std::string write_run(const RunFile& run) {
  RunFile file = run;  // lists of fields are for reading too, so they take what they may change
  RecordWriter writer(file);
  fields(writer, file);
  return json_text(writer.take(), 1) + '\n';
}

std::string mismatch(const RunFile& run, const Problem& problem, const Plan& plan) {
  if (run.objective != problem.objective()) {
    return fmt::format("the run was for {}, the plan is for {}", name_of(run.objective),
                       name_of(problem.objective()));
  }
  if (std::string devices = device_mismatch(run, problem); !devices.empty()) return devices;
  const double value = plan.value * milliseconds_in(problem.unit());
  if (std::abs(run.predicted - value) > kSameValue * value) {
    return fmt::format("the run was of a plan of {:.6g} ms, this one has {:.6g} ms", run.predicted,
                       value);
  }
  return segment_mismatch(run, problem, plan);
}

}  // namespace placewright
