#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/limits.h"
#include "evaluate/cost_model.h"
#include "evaluate/resource_load.h"
#include "formats/json_text.h"
#include "problem/cost_source.h"
#include "problem/op_times.h"
#include "problem/pipeline_samples.h"
#include "problem/time_unit.h"
#include "report/accuracy_story.h"
#include "report/alternatives.h"
#include "report/device_memory.h"
#include "report/op_groups.h"
#include "report/plan_story.h"
#include "report/report_page.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

// Values and bounds are exact; JSON has no infinity, so what is missing is null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// Times and bytes in long lists: nine digits are more than a picture shows.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  const double nine = std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr);
  if (std::floor(nine) == nine && std::abs(nine) < 1e15) return static_cast<std::int64_t>(nine);
  return nine;
}

Json pixels(double value) {
  return static_cast<std::int64_t>(std::lround(value));
}

Json device_index(DeviceId device) {
  return device.valid() ? static_cast<std::int64_t>(device.index()) : std::int64_t{-1};
}

template <class Ids>
Json indices(const Ids& ids) {
  Json list = Json::array();
  for (const auto id : ids) list.push_back(id.index());
  return list;
}

// Resource, amount, resource, amount, …
Json uses_json(const Device& device) {
  Json list = Json::array();
  for (const ResourceUse& use : device.uses) {
    list.push_back(use.resource.index());
    list.push_back(rounded(use.amount));
  }
  return list;
}

Json resources_json(const Problem& problem) {
  Json list = Json::array();
  for (const ResourceId id : problem.resources()) {
    const Resource& resource = problem.resource(id);
    list.push_back({{"name", resource.name}, {"capacity", rounded(resource.capacity)}});
  }
  return list;
}

Json devices_json(const Problem& problem) {
  Json list = Json::array();
  for (const DeviceId id : problem.devices()) {
    const Device& device = problem.device(id);
    list.push_back({{"name", device.name},
                    {"kind", device.kind.index()},
                    {"space", problem.space(id).index()},
                    {"memory", number(problem.space_memory(problem.space(id)))},
                    {"lanes", device.lanes},
                    {"host", problem.on_host(id)},
                    {"uses", uses_json(device)}});
  }
  return list;
}

Json rules_json(const Problem& problem) {
  const Rules& rules = problem.rules();
  Json json = {{"memory", name_of(rules.memory)}};
  if (is_schedule(problem.objective())) json["congestion"] = rules.congestion;
  const PlanForm form = record_of(problem.objective()).form;
  if (form == PlanForm::calls) json["calls"] = rules.calls_per_device;
  if (form == PlanForm::stages) {
    json["contiguity"] = name_of(rules.contiguity);
    json["transfers"] = name_of(rules.transfers);
    if (problem.has_backward_ops()) json["training"] = name_of(rules.training);
    if (rules.max_replicas > 1) json["replicas"] = rules.max_replicas;
  }
  return json;
}

// How far estimated costs are off.
Json error_json(const Problem& problem) {
  if (cost_source(problem.draft()) != CostSource::estimated) return nullptr;
  return {{"times", kFactorOfEstimatedTimes}, {"ratios", kErrorOfEstimatedRatios}};
}

Json problem_json(const Problem& problem) {
  Json models = Json::array();
  for (const ModelId model : problem.models()) {
    models.push_back({{"name", problem.model(model).name},
                      {"arrival", number(problem.model(model).arrival)},
                      {"weight", number(problem.model(model).weight)}});
  }
  return {{"name", problem.name()},
          {"unit", name_of(problem.unit())},
          {"interconnect", problem.interconnect() == InterconnectKind::host ? "host" : "links"},
          {"costs", name_of(cost_source(problem.draft()))},
          {"caution", caution_of(cost_source(problem.draft()))},
          {"error", error_json(problem)},
          {"models", std::move(models)},
          {"edges", problem.edge_count()}};
}

Json ops_json(const Problem& problem) {
  Json names = Json::array(), types = Json::array(), type_of = Json::array(),
       models = Json::array(), memory = Json::array(), pins = Json::array(),
       backward = Json::array(), times = Json::array(), groups = Json::array(),
       flops = Json::array(), shares = Json::array();
  std::map<std::string, std::size_t> numbered;
  const bool shared =
      std::ranges::any_of(problem.draft().ops, [](const Op& op) { return !op.share.empty(); });
  for (const OpId id : problem.ops()) {
    const Op& op = problem.op(id);
    names.push_back(op.name);
    const auto [type, is_new] = numbered.emplace(op.type, numbered.size());
    if (is_new) types.push_back(op.type);
    type_of.push_back(type->second);
    models.push_back(op.model.index());
    memory.push_back(rounded(op.memory));
    flops.push_back(rounded(op.flops));
    pins.push_back(device_index(op.pinned_to));
    backward.push_back(op.backward ? 1 : 0);
    groups.push_back(problem.group(id).index());
    for (const double time : op.time) times.push_back(rounded(time));
    for (std::size_t kind = 0; shared && kind < problem.kind_count(); ++kind) {
      shares.push_back(op.share.empty() ? Json(1) : rounded(op.share[kind]));
    }
  }
  return {{"name", std::move(names)},        {"types", std::move(types)},
          {"type", std::move(type_of)},      {"model", std::move(models)},
          {"memory", std::move(memory)},     {"pin", std::move(pins)},
          {"backward", std::move(backward)}, {"colocated", std::move(groups)},
          {"time", std::move(times)},        {"flops", std::move(flops)},
          {"share", std::move(shares)}};
}

Json tensors_json(const Problem& problem) {
  Json from = Json::array(), to = Json::array(), bytes = Json::array(), names = Json::array(),
       shapes = Json::array();
  for (const TensorId id : problem.tensors()) {
    from.push_back(problem.producer(id).index());
    to.push_back(indices(problem.consumers(id)));
    bytes.push_back(rounded(problem.tensor(id).bytes));
    names.push_back(problem.tensor(id).name);
    shapes.push_back(problem.tensor(id).shape);
  }
  return {{"from", std::move(from)},
          {"to", std::move(to)},
          {"bytes", std::move(bytes)},
          {"name", std::move(names)},
          {"shape", std::move(shapes)}};
}

Json grouping_json(const Grouping& grouping, std::size_t op_count) {
  Json groups = Json::array(), x = Json::array(), y = Json::array(), of = Json::array(),
       bends = Json::array();
  for (const DrawnGroup& group : grouping.groups) {
    groups.push_back({{"name", group.name},
                      {"layer", group.layer},
                      {"width", pixels(group.width)},
                      {"height", pixels(group.height)}});
  }
  for (const OpId op : ids<OpId>(op_count)) {
    x.push_back(pixels(grouping.centre[op].x));
    y.push_back(pixels(grouping.centre[op].y));
    of.push_back(grouping.group_of[op]);
  }
  for (const EdgeBends& edge : grouping.bends) {
    Json points = {edge.from.index(), edge.to.index()};
    for (const Point& point : edge.bends) {
      points.push_back(pixels(point.x));
      points.push_back(pixels(point.y));
    }
    bends.push_back(std::move(points));
  }
  return {{"name", grouping.name},    {"framed", grouping.framed}, {"groups", std::move(groups)},
          {"of", std::move(of)},      {"x", std::move(x)},         {"y", std::move(y)},
          {"bends", std::move(bends)}};
}

Json movements_json(const Problem& problem, const Plan& plan) {
  Json tensor = Json::array(), from = Json::array(), to = Json::array(), start = Json::array(),
       end = Json::array();
  for (const Transfer& transfer : cost_model(problem).movements(problem, plan)) {
    tensor.push_back(transfer.tensor.index());
    from.push_back(device_index(transfer.from));
    to.push_back(device_index(transfer.to));
    start.push_back(rounded(transfer.start));
    end.push_back(rounded(transfer.end));
  }
  return {{"tensor", std::move(tensor)},
          {"from", std::move(from)},
          {"to", std::move(to)},
          {"start", std::move(start)},
          {"end", std::move(end)}};
}

void add_op_times(Json& json, const OpTimes& times) {
  Json start = Json::array(), end = Json::array();
  for (const OpId op : times.start.keys()) {
    start.push_back(rounded(times.start[op]));
    end.push_back(rounded(times.end[op]));
  }
  json["start"] = std::move(start);
  json["end"] = std::move(end);
}

void add_happenings(Json& json, const Problem& problem, const Plan& plan) {
  const PlanForm form = record_of(problem.objective()).form;
  if (form != PlanForm::stages) add_op_times(json, op_times(problem, plan));
  if (form == PlanForm::calls) {
    json["calls"] = Json::array();
    for (const Call& call : plan.calls) {
      json["calls"].push_back({{"device", call.device.index()},
                               {"start", rounded(call.start)},
                               {"end", rounded(call.end)},
                               {"ops", indices(call.ops)}});
    }
  }
  for (const Stage& stage : plan.stages) {
    json["stages"].push_back({{"devices", indices(stage.devices)},
                              {"load", rounded(stage.load)},
                              {"ops", indices(stage.ops)}});
  }
}

Json work_json(const Problem& problem, const Plan& plan) {
  Json list = Json::array();
  const auto work = simulate(problem, plan).devices;
  const auto memory = device_memory(problem, plan);
  for (const DeviceId device : problem.devices()) {
    Json steps = Json::array();
    for (const auto& [time, bytes] : memory[device].steps) {
      steps.push_back(rounded(time));
      steps.push_back(rounded(bytes));
    }
    list.push_back({{"ops", work[device].ops},
                    {"compute", rounded(work[device].compute)},
                    {"in", rounded(work[device].receiving)},
                    {"out", rounded(work[device].sending)},
                    {"busy", rounded(work[device].busy)},
                    {"resident", rounded(memory[device].resident)},
                    {"peak", rounded(memory[device].peak)},
                    {"steps", std::move(steps)}});
  }
  return list;
}

// How long each resource is held, as the busy times of devices.
Json resource_loads_json(const Problem& problem, const Plan& plan) {
  Json list = Json::array();
  for (const double load : resource_loads(problem, plan)) list.push_back(rounded(load));
  return list;
}

// The page does not tell a model's arrival from the beginning.
std::string_view page_reason(WaitedFor reason) {
  const bool nothing = reason == WaitedFor::nothing || reason == WaitedFor::arrival;
  return nothing ? "first" : name_of(reason);
}

Json chain_json(const Problem& problem, const Plan& plan) {
  Json chain = Json::array();
  for (const PathStep& step : critical_path(problem, plan).steps) {
    chain.push_back({name_of(step.kind), step.index, page_reason(step.waited_for)});
  }
  return chain;
}

Json moves_json(const Problem& problem, const Plan& plan) {
  constexpr const char* kVerdicts[] = {"", "unsupported", "memory", "rule"};
  const auto moves = moves_of(problem, plan);
  if (!moves) return nullptr;
  Json list = Json::array();
  for (const Move& move : *moves) {
    list.push_back(move.verdict == MoveVerdict::possible
                       ? rounded(move.value)
                       : Json(kVerdicts[static_cast<int>(move.verdict)]));
  }
  return list;
}

// Times in the problem's unit.
Json measured_json(const Measured& time, double scale) {
  const auto scaled = [&](double value) { return time.kept > 0 ? rounded(value / scale) : Json(); };
  return {{"valid", time.valid()},   {"median", scaled(time.median)},
          {"low", scaled(time.low)}, {"high", scaled(time.high)},
          {"kept", time.kept},       {"rejected", time.rejected}};
}

// How many times as fast as without a plan: by the time per sample where that is the objective.
Json baseline_json(const RunFile& run, const RunBaseline& baseline, double scale) {
  const Measured& rival = run.rival(baseline);
  const bool known = run.measured.valid() && rival.valid() && run.measured.median > 0;
  const auto& per_sample = baseline.per_sample;
  return {{"name", baseline.name},
          {"latency", measured_json(baseline.latency, scale)},
          {"total_completion",
           baseline.total_completion ? measured_json(*baseline.total_completion, scale) : Json()},
          {"per_second", per_sample.valid() ? number(1000 / per_sample.median) : Json()},
          {"speedup", known ? number(rival.median / run.measured.median) : Json()}};
}

Json segments_json(const Problem& problem, const RunFile& run, double scale) {
  std::map<std::string_view, std::size_t> numbered;
  for (const OpId op : problem.ops()) numbered.emplace(problem.op(op).name, op.index());
  Json list = Json::array();
  for (const RunSegment& segment : run.segments) {
    list.push_back({{"device", segment.device},
                    {"ops", segment.ops},
                    {"first", numbered.at(segment.first_op)},
                    {"last", numbered.at(segment.last_op)},
                    {"predicted", rounded(segment.predicted / scale)},
                    {"measured", measured_json(segment.measured, scale)}});
  }
  return list;
}

Json events_json(const Problem& problem, const RunFile& run, double scale) {
  std::map<std::string_view, std::size_t> numbered;
  for (const DeviceId id : problem.devices()) numbered.emplace(problem.device(id).name, id.index());
  Json list = Json::array();
  for (const RunEvent& event : run.timeline) {
    if (!event.segment) continue;  // the page has no lanes for copies
    list.push_back({{"device", numbered.at(run.devices[event.device].name)},
                    {"segment", *event.segment},
                    {"sample", event.sample},
                    {"start", rounded(event.start / scale)},
                    {"end", rounded(event.end / scale)}});
  }
  return list;
}

// What a pipeline was predicted to do with the samples that its run shows; without a run, with as
// many as there are stages and some more, so that the picture has a stretch with all of them busy.
Json samples_json(const Plan& plan, const std::optional<RunFile>& run) {
  constexpr std::size_t kMore = 4;
  std::size_t first = 0, last = plan.stages.size() + kMore;
  if (run && !run->timeline.empty()) {
    const auto [least, most] = std::ranges::minmax_element(run->timeline, {}, &RunEvent::sample);
    first = least->sample;
    last = most->sample + 1;
  }
  Json list = Json::array();
  for (const PipelineSample& sample : pipeline_samples(plan, first, last)) {
    list.push_back({{"device", sample.device.index()},
                    {"stage", sample.stage},
                    {"sample", sample.sample},
                    {"start", rounded(sample.start)},
                    {"end", rounded(sample.end)}});
  }
  return list;
}

Json run_json(const Problem& problem, const RunFile& run) {
  const double scale = milliseconds_in(problem.unit());
  Json json = {{"measured", measured_json(run.measured, scale)},
               {"interrupted", run.interrupted},
               {"completions", Json::array()},
               {"segments", segments_json(problem, run, scale)},
               {"events", events_json(problem, run, scale)},
               {"baselines", Json::array()},
               {"outputs", nullptr}};
  for (const RunModel& model : run.models) {
    if (!model.completion) continue;
    json["completions"].push_back(
        {{"name", model.name}, {"measured", measured_json(*model.completion, scale)}});
  }
  for (const RunBaseline& baseline : run.baselines) {
    json["baselines"].push_back(baseline_json(run, baseline, scale));
  }
  if (run.outputs) {
    json["outputs"] = {
        {"equal", run.outputs->equal},
        {"difference",
         run.outputs->largest_difference ? number(*run.outputs->largest_difference) : Json()},
        {"precision", run.precision ? Json(name_of(*run.precision)) : Json()},
        {"accuracy", accuracy_sentence(run)}};
  }
  return json;
}

Json single_json(const Problem& problem) {
  const auto single = best_single_device(problem);
  if (!single) return nullptr;
  return {{"device", single->device.index()}, {"value", number(single->value)}};
}

Json plan_json(const ReportedPlan& reported) {
  const Problem& problem = *reported.problem;
  const PlanFile& file = reported.file;
  Json json = {{"label", reported.label},
               {"objective", name_of(problem.objective())},
               {"rules", rules_json(problem)},
               {"single", single_json(problem)},
               {"planner", file.planner},
               {"status", name_of(file.status)},
               {"value", number(file.plan.value)},
               {"bound", number(file.certificate.lower_bound)},
               {"gap", number(gap(file.plan.value, file.certificate.lower_bound))},
               {"method", file.certificate.method},
               {"seconds", number(file.seconds)},
               {"settings", file.settings},
               {"placement", indices(file.plan.placement)}};
  const PlanStory story = plan_story(problem, file.plan, file.certificate);
  json["story"] = {{"limit", story.limit}, {"help", story.help}};
  add_happenings(json, problem, file.plan);
  json["transfers"] = movements_json(problem, file.plan);
  json["devices"] = work_json(problem, file.plan);
  json["resources"] = resource_loads_json(problem, file.plan);
  json["critical"] = chain_json(problem, file.plan);
  json["moves"] = moves_json(problem, file.plan);
  if (!file.plan.stages.empty()) json["samples"] = samples_json(file.plan, reported.run);
  json["run"] = reported.run ? run_json(problem, *reported.run) : Json();
  return json;
}

Json groupings_json(std::span<const ReportedPlan> plans) {
  const Problem& problem = *plans.front().problem;
  Json list = Json::array();
  list.push_back(grouping_json(flat_grouping(problem), problem.op_count()));
  const auto add = [&](const std::optional<Grouping>& grouping, int plan) {
    if (!grouping) return;
    Json json = grouping_json(*grouping, problem.op_count());
    if (plan >= 0) json["plan"] = plan;
    list.push_back(std::move(json));
  };
  const BlockGroupings by_block = block_groupings(problem);
  add(by_block.blocks, -1);
  add(by_block.parts, -1);
  add(model_grouping(problem), -1);
  add(colocation_grouping(problem), -1);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].file.plan;
    add(plan_grouping(*plans[i].problem, plan), static_cast<int>(i));
    add(planner_grouping(*plans[i].problem, plan), static_cast<int>(i));
  }
  return list;
}

}  // namespace

std::string report_data(std::span<const ReportedPlan> plans) {
  const Problem& problem = *plans.front().problem;
  const NodeSize size;
  Json json = {{"program", "placewright " PLACEWRIGHT_VERSION},
               {"problem", problem_json(problem)},
               {"kinds", Json::array()},
               {"devices", devices_json(problem)},
               {"resources", resources_json(problem)},
               {"spaces", Json::array()},
               {"ops", ops_json(problem)},
               {"tensors", tensors_json(problem)},
               {"node", {{"width", pixels(size.width)}, {"height", pixels(size.height)}}},
               {"groupings", groupings_json(plans)},
               {"plans", Json::array()}};
  for (const SpaceId space : problem.spaces()) json["spaces"].push_back(problem.space_name(space));
  for (const DeviceKind& kind : problem.draft().cluster.kinds) json["kinds"].push_back(kind.name);
  for (const ReportedPlan& plan : plans) json["plans"].push_back(plan_json(plan));
  // Names that are not UTF-8 must not keep the page from being written.
  return json_text(json, -1);
}

}  // namespace placewright
