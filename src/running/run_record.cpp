#include "running/run_record.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/plan_rows.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

std::vector<RunModel> models_of(const Problem& problem, const Plan& plan, const RunResult& result) {
  std::vector<RunModel> models;
  for (const ModelId model : problem.models()) {
    models.push_back({problem.model(model).name, {}, {}});
    if (model.index() < result.completions.size()) {
      models.back().completion = result.completions[model.index()];
    }
  }
  if (!plan.schedule) return models;
  const double unit = milliseconds_in(problem.unit());
  for (const OpId op : problem.ops()) {
    auto& end = models[problem.op(op).model.index()].predicted;
    end = std::max(end.value_or(0), plan.schedule->end[op] * unit);
  }
  return models;
}

std::vector<RunDevice> devices_of(const Problem& problem, const RunResult& result) {
  Table<DeviceId, RunDevice> devices(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    devices[device].name = problem.device(device).name;
    devices[device].busy = result.busy[device];
  }
  for (const Segment& segment : result.segments) {
    const double time = segment.predicted * milliseconds_in(problem.unit());
    for (const DeviceId device : segment.devices) {
      ++devices[device].segments;
      devices[device].ops += segment.ops.size();
      devices[device].predicted += time / static_cast<double>(segment.devices.size());
    }
  }
  return {devices.begin(), devices.end()};
}

RunEvent event_of(const StepEvent& event, std::size_t segments) {
  RunEvent record{.device = event.device.index(),
                  .segment = {},
                  .transfer = {},
                  .sample = event.sample,
                  .start = event.start,
                  .end = event.end};
  if (event.step < segments) {
    record.segment = event.step;
  } else {
    record.transfer = event.step - segments;
  }
  return record;
}

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

RunOutputs outputs_of(const OutputCheck& check) {
  RunOutputs outputs{.equal = check.equal(),
                     .largest_difference = if_finite(check.largest_difference),
                     .tolerance = check.tolerance};
  if (const auto& against = check.against_f32) {
    outputs.against_f32 =
        RunAccuracy{if_finite(against->largest_error), if_finite(against->mean_error),
                    against->inputs, against->same_top};
  }
  return outputs;
}

}  // namespace

RunFile run_file_of(const Problem& problem, const Plan& plan, const RunResult& result,
                    const std::vector<Baseline>& baselines) {
  const double unit = milliseconds_in(problem.unit());
  RunFile file;
  file.objective = problem.objective();
  file.predicted = plan.value * unit;
  file.measured = result.value;
  file.samples = result.samples;
  file.interrupted = result.interrupted;
  file.models = models_of(problem, plan, result);
  file.devices = devices_of(problem, result);
  for (std::size_t i = 0; i < result.segments.size(); ++i) {
    const Segment& segment = result.segments[i];
    file.segments.push_back(
        {.device = fmt::format("{}", fmt::join(device_names(problem, segment.devices), ", ")),
         .ops = segment.ops.size(),
         .first_op = problem.op(segment.ops.front()).name,
         .last_op = problem.op(segment.ops.back()).name,
         .predicted = segment.predicted * unit,
         .measured = result.segment_times[i]});
  }
  for (std::size_t i = 0; i < result.copies.size(); ++i) {
    const TensorCopy& copy = result.copies[i];
    file.transfers.push_back({.tensor = copy.tensor,
                              .from = problem.device(copy.from).name,
                              .to = problem.device(copy.to).name,
                              .bytes = copy.bytes,
                              .measured = result.copy_times[i]});
  }
  for (const StepEvent& event : result.events) {
    file.timeline.push_back(event_of(event, result.segments.size()));
  }
  for (const Baseline& baseline : baselines) {
    file.baselines.push_back({baseline.name, baseline.latency, baseline.per_sample,
                              baseline.is_plan, baseline.total_completion, baseline.turns});
  }
  if (result.outputs.compared) {
    file.precision = result.outputs.precision;
    file.outputs = outputs_of(result.outputs);
  }
  return file;
}

}  // namespace placewright
