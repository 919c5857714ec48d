#include "running/run_record.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "problem/time_unit.h"

namespace placewright {
namespace {

std::string device_names(const Problem& problem, const Segment& segment) {
  std::vector<std::string> names;
  for (const DeviceId device : segment.devices) names.push_back(problem.device(device).name);
  return fmt::format("{}", fmt::join(names, ", "));
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

RunOutputs outputs_of(const OutputCheck& check) {
  RunOutputs outputs{
      .equal = check.equal(), .largest_difference = {}, .tolerance = check.tolerance};
  if (std::isfinite(check.largest_difference))
    outputs.largest_difference = check.largest_difference;
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
  file.interrupted = result.interrupted;
  for (const ModelId model : problem.models()) {
    RunModel& record = file.models.emplace_back(RunModel{problem.model(model).name, {}});
    if (model.index() < result.completions.size()) {
      record.completion = result.completions[model.index()];
    }
  }
  for (const DeviceId device : problem.devices()) {
    file.devices.push_back({problem.device(device).name, result.busy[device]});
  }
  for (std::size_t i = 0; i < result.segments.size(); ++i) {
    const Segment& segment = result.segments[i];
    file.segments.push_back({.device = device_names(problem, segment),
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
    file.baselines.push_back(
        {baseline.name, baseline.latency, baseline.per_sample, baseline.is_plan});
  }
  if (result.outputs.compared) file.outputs = outputs_of(result.outputs);
  return file;
}

}  // namespace placewright
