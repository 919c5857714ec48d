#include "formats/run_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/json.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

// Values are written with all their digits; only the change of unit rounds.
constexpr double kSameValue = 1e-6;

std::size_t count(JsonValue value, std::size_t least = 0) {
  return static_cast<std::size_t>(
      value.integer(static_cast<std::int64_t>(least), std::numeric_limits<std::int64_t>::max()));
}

std::optional<double> amount_or_nothing(JsonValue value) {
  if (value.is_null()) return std::nullopt;
  return value.amount();
}

class RunReader {
 public:
  RunReader(std::string_view text, const std::string& origin) : document_(text, origin) {}

  RunFile read() {
    const JsonValue root = document_.root();
    check_header(root, "run");
    unknown_.check(
        root, {"placewright", "version", "objective", "unit", "predicted", "measured",
               "interrupted", "models", "devices", "segments", "timeline", "baselines", "outputs"});
    const auto objective = value_named<Objective>(root.at("objective").text());
    if (!objective || *objective == Objective::call_latency) {
      root.at("objective").fail("expected 'latency', 'total-completion' or 'throughput'");
    }
    file_.objective = *objective;
    if (root.at("unit").text() != "ms") root.at("unit").fail("expected 'ms'");
    file_.predicted = root.at("predicted").amount();
    file_.measured = read_time(root.at("measured"));
    file_.interrupted = root.at("interrupted").flag();
    for (const JsonValue model : root.at("models").elements()) read_model(model);
    for (const JsonValue device : root.at("devices").elements()) read_device(device);
    for (const JsonValue segment : root.at("segments").elements()) read_segment(segment);
    for (const JsonValue event : root.at("timeline").elements()) read_event(event);
    for (const JsonValue baseline : root.at("baselines").elements()) read_baseline(baseline);
    if (const auto outputs = root.find("outputs")) read_outputs(*outputs);
    file_.warnings = unknown_.warnings();
    return std::move(file_);
  }

 private:
  RunTime read_time(JsonValue record) {
    unknown_.check(record, {"valid", "median", "low", "high", "kept", "rejected"});
    RunTime time{record.at("valid").flag(),
                 amount_or_nothing(record.at("median")),
                 amount_or_nothing(record.at("low")),
                 amount_or_nothing(record.at("high")),
                 count(record.at("kept")),
                 count(record.at("rejected"))};
    if (time.valid && !time.median) record.at("median").fail("a valid measurement has a median");
    return time;
  }

  void read_model(JsonValue record) {
    unknown_.check(record, {"name", "completion"});
    RunModel model{std::string(record.at("name").text()), std::nullopt};
    if (const auto completion = record.find("completion"))
      model.completion = read_time(*completion);
    file_.models.push_back(std::move(model));
  }

  void read_device(JsonValue record) {
    unknown_.check(record, {"name", "busy"});
    const JsonValue name = record.at("name");
    if (!device_named_.emplace(name.text(), file_.devices.size()).second) {
      name.fail(fmt::format("there are two devices '{}'", name.text()));
    }
    file_.devices.push_back({std::string(name.text()), record.at("busy").amount()});
  }

  void read_segment(JsonValue record) {
    unknown_.check(record, {"device", "ops", "first_op", "last_op", "predicted", "measured"});
    file_.segments.push_back({std::string(record.at("device").text()), count(record.at("ops"), 1),
                              std::string(record.at("first_op").text()),
                              std::string(record.at("last_op").text()),
                              record.at("predicted").amount(), read_time(record.at("measured"))});
  }

  void read_event(JsonValue record) {
    unknown_.check(record, {"device", "segment", "sample", "start", "end"});
    const JsonValue device = record.at("device");
    const auto found = device_named_.find(std::string(device.text()));
    if (found == device_named_.end()) {
      device.fail(fmt::format("no device is called '{}'", device.text()));
    }
    const JsonValue number = record.at("segment");
    const std::size_t segment = count(number, 1);
    if (segment > file_.segments.size()) {
      number.fail(fmt::format("there are only {} segments", file_.segments.size()));
    }
    const RunEvent event{found->second, segment - 1, count(record.at("sample")),
                         record.at("start").amount(), record.at("end").amount()};
    if (event.end < event.start) record.at("end").fail("ends before it starts");
    file_.timeline.push_back(event);
  }

  void read_baseline(JsonValue record) {
    unknown_.check(record, {"name", "latency", "per_sample"});
    file_.baselines.push_back({std::string(record.at("name").text()),
                               read_time(record.at("latency")),
                               read_time(record.at("per_sample"))});
  }

  void read_outputs(JsonValue record) {
    unknown_.check(record, {"equal", "largest_difference"});
    file_.outputs =
        RunOutputs{record.at("equal").flag(), amount_or_nothing(record.at("largest_difference"))};
  }

  JsonDocument document_;
  UnknownKeys unknown_;
  RunFile file_;
  std::unordered_map<std::string, std::size_t> device_named_;
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
  return RunReader(text, origin).read();
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
