#include "formats/run_file.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/cluster_json.h"
#include "formats/file_schemas.h"
#include "formats/json_schema.h"
#include "formats/json_text.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

// Values are written with all their digits; only the change of unit rounds.
constexpr double kSameValue = 1e-6;

struct ValidForm {};      // follows from the numbers of runs
struct ObjectiveForm {};  // of a plan that can be run
struct UnitForm {};
struct OpCountForm {};  // at least one
struct DeviceForm {};   // the name of one of the file's devices
struct SegmentForm {};
struct TransferForm {};

}  // namespace

template <>
inline constexpr auto kFields<Measured> =
    std::tuple{required("valid", Computed{}, ValidForm{})
                   .says("Others did not take the cores in most samples, and the deciles are no "
                         "further apart than 40 % of the median"),
               required("median", &Measured::median)
                   .says("Of all samples if it is not valid; null: there was none")
                   .or_null(),
               required("low", &Measured::low).says("First decile").or_null(),
               required("high", &Measured::high).says("Last decile").or_null(),
               required("kept", &Measured::kept),
               required("rejected", &Measured::rejected),
               stated("watched", &Measured::watched)
                   .says("false: a device cannot tell whether others used it; absent: true")};

template <>
inline constexpr std::string_view kLaw<Measured> =
    R"({"description": "A time measured many times",
        "if": {"properties": {"valid": {"enum": [true, 1]}}},
        "then": {"properties": {"median": {"type": "number"}}}})";

template <>
inline constexpr auto kFields<RunModel> =
    std::tuple{required("name", &RunModel::name),
               optional("predicted", &RunModel::predicted).says("When it ends; schedules only"),
               optional("completion", &RunModel::completion).says("When it ended; schedules only")};

template <>
inline constexpr auto kFields<RunDevice> = std::tuple{
    required("name", &RunDevice::name),
    stated("segments", &RunDevice::segments).says("How many segments it runs, replicas included"),
    stated("ops", &RunDevice::ops).says("How many ops are in its segments"),
    stated("predicted", &RunDevice::predicted).says("The prediction of `busy`"),
    required("busy", &RunDevice::busy).says("Per sample")};

template <>
inline constexpr auto kFields<RunSegment> =
    std::tuple{required("device", &RunSegment::device)
                   .says("The device; with replicas all of them, separated by commas"),
               required("ops", &RunSegment::ops, OpCountForm{}),
               required("first_op", &RunSegment::first_op),
               required("last_op", &RunSegment::last_op),
               required("predicted", &RunSegment::predicted),
               required("measured", &RunSegment::measured)};

template <>
inline constexpr auto kFields<RunTransfer> = std::tuple{
    required("tensor", &RunTransfer::tensor).says("The name of the op that makes the tensor"),
    required("from", &RunTransfer::from), required("to", &RunTransfer::to),
    required("bytes", &RunTransfer::bytes), required("measured", &RunTransfer::measured)};

template <>
inline constexpr auto kFields<RunEvent> =
    std::tuple{required("device", &RunEvent::device, DeviceForm{})
                   .says("The device that ran the segment or received the transfer"),
               optional("segment", &RunEvent::segment, SegmentForm{}).says("1: the first"),
               optional("transfer", &RunEvent::transfer, TransferForm{}).says("1: the first"),
               required("sample", &RunEvent::sample),
               required("start", &RunEvent::start),
               required("end", &RunEvent::end)};

template <>
inline constexpr std::string_view kLaw<RunEvent> =
    R"({"oneOf": [{"required": ["segment"]}, {"required": ["transfer"]}]})";

template <>
inline constexpr auto kFields<RunBaseline> = std::tuple{
    required("name", &RunBaseline::name),
    required("latency", &RunBaseline::latency),
    required("per_sample", &RunBaseline::per_sample).says("Between two finished samples"),
    optional("is_plan", &RunBaseline::is_plan)
        .says("The plan is this configuration, which was measured once for both; absent: false"),
    optional("total_completion", &RunBaseline::total_completion)
        .says("Of several models, where that is the objective: what the plan's value is compared "
              "with"),
    optional("turns", &RunBaseline::turns)
        .says("The medians of its turns, which are those of the plan; it may have left before the "
              "last one")};

template <>
inline constexpr auto kFields<RunAccuracy> = std::tuple{
    required("largest_error", &RunAccuracy::largest_error)
        .says("Relative to the largest value of its output; null: not a number")
        .or_null(),
    required("mean_error", &RunAccuracy::mean_error)
        .says("The mean over all values, relative to the largest value of the output")
        .or_null(),
    required("inputs", &RunAccuracy::inputs).says("How many inputs were tried"),
    optional("same_top", &RunAccuracy::same_top)
        .says(
            "For how many of these the largest value is at the same place; absent: no classifier")};

template <>
inline constexpr auto kFields<RunOutputs> = std::tuple{
    required("equal", &RunOutputs::equal),
    required("largest_difference", &RunOutputs::largest_difference)
        .says("Relative to the largest value of its output; null: not a number")
        .or_null(),
    optional("tolerance", &RunOutputs::tolerance)
        .says("Up to which largest_difference the outputs are equal"),
    optional("against_f32", &RunOutputs::against_f32)
        .says("The unsplit model beside itself in f32; absent: not tried, or it computes in f32")};

namespace {

constexpr auto kRunFields = std::tuple{
    required("objective", &RunFile::objective, ObjectiveForm{}),
    required("unit", Computed{}, UnitForm{}).says("The unit of all times in the document"),
    required("predicted", &RunFile::predicted).says("The plan's value"),
    required("measured", &RunFile::measured),
    optional("turns", &RunFile::turns)
        .says("The medians of the turns in which the plan ran beside the baselines"),
    optional("samples", &RunFile::samples)
        .says("How many were measured; of a pipeline in blocks, which `measured` counts"),
    required("interrupted", &RunFile::interrupted),
    required("models", &RunFile::models),
    required("devices", &RunFile::devices),
    required("segments", &RunFile::segments),
    stated("transfers", &RunFile::transfers).says("Copies between the memories of two devices"),
    required("timeline", &RunFile::timeline)
        .says("Of the median sample, or of a stretch of a pipeline; empty where no sample was "
              "kept"),  // behind what its events refer to
    required("baselines", &RunFile::baselines).says("The same cores without a plan"),
    optional("precision", &RunFile::precision)
        .says("What the models compute in; absent: outputs were not compared"),
    optional("outputs", &RunFile::outputs).says("Absent: not compared")};

struct RunSchema : NameSchemas {
  using NameSchemas::schema;

  Schema schema(ObjectiveForm /*form*/) const {
    return {{"enum", {"throughput", "latency", "total-completion"}}};
  }
  Schema schema(UnitForm /*form*/) const { return {{"const", "ms"}}; }
  Schema schema(ValidForm /*form*/) const { return common_schema("flag"); }
  Schema schema(DeviceForm /*form*/) const { return {{"type", "string"}}; }
  Schema schema(OpCountForm /*form*/) const { return from_one(); }
  Schema schema(SegmentForm /*form*/) const { return from_one(); }
  Schema schema(TransferForm /*form*/) const { return from_one(); }

 private:
  static Schema from_one() { return {{"type", "integer"}, {"minimum", 1}}; }
};

struct RunWriting {
  const RunFile& file;

  void append(std::string& text, std::same_as<double> auto value) const {
    text += nlohmann::ordered_json(value).dump();
  }
  // Without a run there is no time.
  void append(std::string& text, const Measured& time) const {
    Measured written = time;
    if (time.median <= 0) written.median = written.low = written.high = kInfinity;
    append_record(text, written, *this);
  }
  void append(ValidForm, std::string& text, const Measured& time) const {
    append_value(text, time.valid(), *this);
  }
  void append(UnitForm, std::string& text, const RunFile&) const { append_quoted(text, "ms"); }
  void append(DeviceForm, std::string& text, const RunEvent& event) const {
    append_quoted(text, file.devices[event.device].name);
  }
  void append(SegmentForm, std::string& text, const RunEvent& event) const {
    append_value(text, *event.segment + 1, *this);
  }
  void append(TransferForm, std::string& text, const RunEvent& event) const {
    append_value(text, *event.transfer + 1, *this);
  }
};

struct RunReading {
  const RunFile& file;
  UnknownKeys unknown = {};

  void read(ObjectiveForm, JsonValue name, RunFile& run) {
    const auto found = value_named<Objective>(name.text());
    if (!found || !record_of(*found).runs) {
      name.fail("expected 'latency', 'total-completion' or 'throughput'");
    }
    run.objective = *found;
  }
  void read(UnitForm, JsonValue unit, RunFile&) {
    if (unit.text() != "ms") unit.fail("expected 'ms'");
  }
  void read(JsonValue record, Measured& time) {
    read_record(record, time, *this);
    if (time.kept > 0 && record.at("median").is_null()) {
      record.at("median").fail("a measurement with runs that were kept has a median");
    }
    // Files from before the spread counted call a measurement valid whatever that is.
    if (record.at("valid").flag() ? !time.undisturbed() : time.valid()) {
      record.at("valid").fail(
          fmt::format("{} kept and {} rejected runs say otherwise", time.kept, time.rejected));
    }
  }
  void read(JsonValue record, RunDevice& device) {
    read_record(record, device, *this);
    for (const RunDevice& other : file.devices) {
      if (&other == &device || other.name != device.name) continue;
      record.at("name").fail(fmt::format("there are two devices '{}'", device.name));
    }
  }
  void read(OpCountForm, JsonValue count, RunSegment& segment) { segment.ops = from_one(count); }
  void read(JsonValue record, RunEvent& event) {
    read_record(record, event, *this);
    if (event.segment.has_value() == event.transfer.has_value()) {
      record.fail("expected either a 'segment' or a 'transfer'");
    }
    if (event.end < event.start) record.at("end").fail("ends before it starts");
  }
  void read(DeviceForm, JsonValue name, RunEvent& event) {
    const auto found =
        std::find_if(file.devices.begin(), file.devices.end(),
                     [&](const RunDevice& each) { return each.name == name.text(); });
    if (found == file.devices.end()) {
      name.fail(fmt::format("no device is called '{}'", name.text()));
    }
    event.device = static_cast<std::size_t>(found - file.devices.begin());
  }
  void read(SegmentForm, JsonValue number, RunEvent& event) {
    event.segment = place(number, file.segments.size(), "segments");
  }
  void read(TransferForm, JsonValue number, RunEvent& event) {
    event.transfer = place(number, file.transfers.size(), "transfers");
  }

 private:
  static std::size_t from_one(JsonValue json) {
    return static_cast<std::size_t>(json.integer(1, std::numeric_limits<std::int64_t>::max()));
  }
  // Files count from 1.
  static std::size_t place(JsonValue json, std::size_t size, std::string_view noun) {
    const std::size_t number = from_one(json);
    if (number > size) json.fail(fmt::format("there are only {} {}", size, noun));
    return number - 1;
  }
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

const RunBaseline* RunFile::best_baseline() const {
  const RunBaseline* best = nullptr;
  for (const RunBaseline& baseline : baselines) {
    const double time = rival(baseline).median;
    if (time > 0 && (best == nullptr || time < rival(*best).median)) best = &baseline;
  }
  return best;
}

RunFile parse_run(std::string_view text, const std::string& origin) {
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  RunFile file;
  RunReading context{file};
  read_file<kRunFields>(root, "run", file, context);
  file.warnings = context.unknown.warnings();
  return file;
}

Schema run_schema() {
  Schema schema = begun_schema(
      "run-output",
      "What `placewright run` measured: what `--json` prints, `-o` writes and `report --run` reads",
      "run");
  add_fields<RunFile>(schema, kRunFields, RunSchema{});
  return schema;
}

std::string write_run(const RunFile& run) {
  std::string text = begun_file("run");
  append_fields(text, run, kRunFields, RunWriting{run});
  text += '}';
  return json_text(nlohmann::ordered_json::parse(text), 1) + '\n';
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
