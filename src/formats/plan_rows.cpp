#include "formats/plan_rows.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "formats/printable.h"
#include "problem/op_times.h"

namespace placewright {
namespace {

// What a row is sorted by.
struct TimedRow {
  double start = 0;
  double end = 0;
  std::vector<std::string> cells;
};

std::string number(double value) {
  return value < kInfinity ? fmt::format("{}", value) : "";
}

void add_ops(const Problem& problem, const Plan& plan, std::vector<TimedRow>& rows) {
  const bool timed = problem.objective() != Objective::throughput;
  const OpTimes times = op_times(problem, plan);
  for (const OpId op : problem.topological_order()) {
    const DeviceId device = plan.placement[op];
    const double start = times.start[op];
    const double end = times.end[op];
    rows.push_back(
        {start,
         end,
         {"op", problem.op(op).name, problem.model(problem.op(op).model).name,
          problem.device(device).name, "", timed ? number(start) : "", timed ? number(end) : "",
          number(plan.schedule ? end - start : problem.time(op, device)),
          number(problem.memory(op)), ""}});
  }
}

void add_transfers(const Problem& problem, const Plan& plan, std::vector<TimedRow>& rows) {
  if (!plan.schedule) return;
  for (const Transfer& transfer : plan.schedule->transfers) {
    rows.push_back(
        {transfer.start,
         transfer.end,
         {"transfer", tensor_name(problem, transfer.tensor), "", place_name(problem, transfer.from),
          place_name(problem, transfer.to), number(transfer.start), number(transfer.end),
          number(transfer.end - transfer.start), number(problem.tensor(transfer.tensor).bytes),
          ""}});
  }
}

void add_calls(const Problem& problem, const Plan& plan, std::vector<TimedRow>& rows) {
  Table<DeviceId, std::size_t> count(problem.device_count(), 0);
  for (const Call& call : plan.calls) {
    rows.push_back({call.start,
                    call.end,
                    {"call", fmt::format("{}", ++count[call.device]), "",
                     problem.device(call.device).name, "", number(call.start), number(call.end),
                     number(call.end - call.start), "", fmt::format("{}", call.ops.size())}});
  }
}

void add_stages(const Problem& problem, const Plan& plan, std::vector<TimedRow>& rows) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const std::vector<std::string> devices = device_names(problem, stage.devices);
    const bool one_turn = stage.offset && !stage.backward_offset;
    rows.push_back(
        {0,
         0,
         {"stage", fmt::format("{}", i + 1), "", fmt::format("{}", fmt::join(devices, " ")), "",
          number(stage.offset.value_or(kInfinity)),
          number(one_turn ? *stage.offset + stage.load : kInfinity), number(stage.load), "",
          fmt::format("{}", stage.ops.size())}});
  }
}

bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) {
    return false;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc{} || end != text.data() + text.size();  // "-1.5" is none
}

}  // namespace

std::string tensor_name(const Problem& problem, TensorId tensor) {
  const std::string& name = problem.tensor(tensor).name;
  return name.empty() ? problem.op(problem.producer(tensor)).name : name;
}

std::vector<std::string> device_names(const Problem& problem, std::span<const DeviceId> devices) {
  std::vector<std::string> names;
  for (const DeviceId device : devices) names.push_back(problem.device(device).name);
  return names;
}

std::string place_name(const Problem& problem, DeviceId device) {
  return device.valid() ? problem.device(device).name : "host";
}

PlanRows plan_rows(const Problem& problem, const Plan& plan) {
  std::vector<TimedRow> rows;
  add_stages(problem, plan, rows);
  add_calls(problem, plan, rows);
  add_ops(problem, plan, rows);
  add_transfers(problem, plan, rows);
  std::stable_sort(rows.begin(), rows.end(), [](const TimedRow& a, const TimedRow& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  PlanRows result{{"kind", "name", "model", "device", "to", "start", "end", "time", "bytes", "ops"},
                  {}};
  for (TimedRow& row : rows) result.rows.push_back(std::move(row.cells));
  return result;
}

std::string csv_field(const std::string& content) {
  std::string text = with_escapes(content);
  if (is_formula(text)) text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

std::string csv_text(const PlanRows& rows) {
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += csv_field(row[i]);
    }
    text += '\n';
  };
  append(rows.titles);
  for (const auto& row : rows.rows) append(row);
  return text;
}

}  // namespace placewright
