#include "cli/run_trace.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/online.h"
#include "backends/opened_models.h"
#include "cli/interruption.h"
#include "cli/status_line.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "formats/trace_export.h"
#include "planners/flow/model_shares.h"
#include "problem/measured.h"
#include "problem/time_unit.h"
#include "running/arrival_run.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

// What the backend gives by itself: every model started when it arrives, with all threads.
constexpr const char* kTogether = "together";

// One way to decide, and what came of it.
struct Method {
  std::string name;
  std::optional<OnlineMethod> online;  // nullopt: kTogether
  std::optional<OnlineRun> predicted;
  std::vector<double> totals;  // total completion of each run, in milliseconds
  std::size_t typical = 0;     // the run with the median total
  Measured measured;

  // Whether the backend gives this without planning.
  [[nodiscard]] bool is_default() const { return !online || online == OnlineMethod::shortest; }
};

std::vector<Method> methods() {
  std::vector<Method> all;
  for (const OnlineMethod method : values_of<OnlineMethod>()) {
    if (method == OnlineMethod::afresh) continue;  // the decisions of talos, made more slowly
    all.push_back({.name = std::string(name_of(method)), .online = method});
  }
  all.push_back({.name = kTogether, .online = std::nullopt});
  return all;
}

// The trace as a problem in which every arrival is one op.
class WholeTrace {
 public:
  WholeTrace(const PlayedTrace& played, const std::string& path)
      : fine_(trace_problem(played.catalogue, played.trace)),
        whole_(whole_models(fine_)),
        scale_(milliseconds_in(fine_.unit())) {
    op_.resize(played.trace.arrivals.size());
    for (const OpId op : problem().ops()) {
      OpId& known = op_[problem().op(op).model.index()];
      if (known.valid()) {
        throw InputError(path, "",
                         fmt::format("no device can run all of the model '{}'",
                                     problem().model(problem().op(op).model).name));
      }
      known = op;
    }
  }

  [[nodiscard]] const Problem& problem() const { return whole_.coarse(); }
  [[nodiscard]] double scale() const { return scale_; }  // milliseconds for each unit
  [[nodiscard]] OpId op(std::size_t arrival) const { return op_[arrival]; }

 private:
  Problem fine_;
  Coarsening whole_;
  double scale_;
  std::vector<OpId> op_;  // by arrival
};

// Asks an OnlinePlanner, with what really happened until now; what runs ends when it was predicted
// to, or is about to end.
class PlannedRule {
 public:
  PlannedRule(const WholeTrace& trace, OnlineMethod method)
      : trace_(trace), planner_(trace.problem(), method) {}

  std::vector<ArrivalStart> operator()(double milliseconds, std::span<const ArrivalState> states) {
    const Problem& problem = trace_.problem();
    const double now = milliseconds / trace_.scale();
    Placement placement(problem.op_count());
    Schedule schedule;
    schedule.start.assign(problem.op_count(), 0);
    schedule.end.assign(problem.op_count(), 0);
    Table<ModelId, char> known(problem.model_count(), 0);
    for (std::size_t i = 0; i < states.size(); ++i) {
      const ArrivalState& state = states[i];
      known[ModelId{i}] =
          state.stage != ArrivalStage::coming && state.stage != ArrivalStage::cancelled;
      if (state.stage != ArrivalStage::started && state.stage != ArrivalStage::complete) continue;
      const OpId op = trace_.op(i);
      placement[op] = state.device;
      schedule.start[op] = std::min(state.start / trace_.scale(),
                                    std::nextafter(now, -std::numeric_limits<double>::infinity()));
      schedule.end[op] = state.stage == ArrivalStage::complete
                             ? std::min(state.end / trace_.scale(), now)
                             : std::max(now, schedule.start[op] + problem.time(op, state.device));
    }
    const auto decision = planner_.decide(placement, schedule, now, known);
    if (!decision) throw RuntimeError("no device has room for the models that have arrived");
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const OpId op = trace_.op(i);
      if (states[i].stage == ArrivalStage::waiting && decision->schedule.start[op] <= now) {
        starts.push_back({i, decision->placement[op]});
      }
    }
    return starts;
  }

 private:
  const WholeTrace& trace_;
  OnlinePlanner planner_;
};

// Starts whatever has arrived on its fastest device, whoever else is there.
class TogetherRule {
 public:
  explicit TogetherRule(const WholeTrace& trace) {
    const Problem& problem = trace.problem();
    const ModelShares times(problem);
    for (const ModelId model : problem.models()) fastest_.push_back(times.fastest(model));
  }

  std::vector<ArrivalStart> operator()(double, std::span<const ArrivalState> states) const {
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::waiting) starts.push_back({i, fastest_[ModelId{i}]});
    }
    return starts;
  }

 private:
  Table<ModelId, DeviceId> fastest_;
};

std::vector<ArrivingModel> arriving(const PlayedTrace& played, double scale) {
  std::vector<ArrivingModel> arrivals;
  for (const TraceArrival& arrival : played.trace.arrivals) {
    const auto& models = played.catalogue.draft().models;
    const auto found = std::ranges::find(models, arrival.model, &Model::name);
    ArrivingModel& made = arrivals.emplace_back();
    made.model = static_cast<std::size_t>(found - models.begin());
    made.time = arrival.time * scale;
    if (arrival.cancelled) made.cancelled = *arrival.cancelled * scale;
  }
  return arrivals;
}

struct TraceReport {
  const PlayedTrace& played;
  const WholeTrace& whole;
  const std::vector<Method>& methods;
  const ArrivalRuns& runs;

  [[nodiscard]] double predicted(const Method& method) const {
    return method.predicted->total_completion * whole.scale();
  }
  [[nodiscard]] const std::vector<ArrivalState>& typical(std::size_t method) const {
    return runs.states[method][methods[method].typical];
  }
};

double total_completion(const PlayedTrace& played, std::span<const ArrivalState> states,
                        double scale) {
  double total = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].stage != ArrivalStage::complete) continue;
    const TraceArrival& arrival = played.trace.arrivals[i];
    total += arrival.weight * (states[i].end - arrival.time * scale);
  }
  return total;
}

std::string time_text(double milliseconds) {
  return value_text(milliseconds, TimeUnit::milliseconds);
}

std::string methods_table(const TraceReport& report) {
  TextTable table({{"method"},
                   {"predicted", Align::right},
                   {"measured", Align::right},
                   {"prediction is off by", Align::right},
                   {"spread", Align::right},
                   {"to talos", Align::right}});
  for (const Method& method : report.methods) {
    const double predicted = method.predicted ? report.predicted(method) : 0;
    const double own = method.measured.median;
    table.add(
        {method.name, method.predicted ? time_text(predicted) : "-", time_text(own),
         method.predicted && own > 0 ? fmt::format("{:+.1f} %", 100 * (predicted / own - 1)) : "-",
         fmt::format("{:.1f} %", 100 * method.measured.spread()),
         fmt::format("{:.3f} x", own / report.methods.front().measured.median)});
  }
  return table.text();
}

std::string stage_text(const ArrivalState& state) {
  return state.stage == ArrivalStage::cancelled ? "cancelled" : "";
}

// The typical run of the first method.
std::string arrivals_table(const TraceReport& report) {
  TextTable table({{"model"},
                   {"arrives", Align::right},
                   {"device"},
                   {"starts", Align::right},
                   {"ends", Align::right},
                   {"predicted", Align::right},
                   {""}});
  const auto& states = report.typical(0);
  const OnlineRun& predicted = *report.methods.front().predicted;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TraceArrival& arrival = report.played.trace.arrivals[i];
    const ArrivalState& state = states[i];
    const bool ran = state.device.valid();
    table.add({arrival.name, time_text(arrival.time * report.whole.scale()),
               ran ? report.played.catalogue.device(state.device).name : "-",
               ran ? time_text(state.start) : "-",
               state.stage == ArrivalStage::complete ? time_text(state.end) : "-",
               predicted.models[i].complete
                   ? time_text(predicted.models[i].completion * report.whole.scale())
                   : "-",
               stage_text(state)});
  }
  return table.text();
}

// How talos does beside the better of what the backend gives by itself.
std::string headline(const TraceReport& report) {
  const Method* best = nullptr;
  for (const Method& method : report.methods) {
    if (!method.is_default()) continue;
    if (best == nullptr || method.measured.median < best->measured.median) best = &method;
  }
  const double own = report.methods.front().measured.median;
  return fmt::format(
      "total completion: {}; {:.3g} times as fast as {} ({}), the best without a plan",
      time_text(own), best->measured.median / own, best->name, time_text(best->measured.median));
}

void print_text(const TraceReport& report) {
  fmt::print("{}: {} arrivals, each method run {} times\n\n{}\n{}\n",
             printable(report.played.trace.name), report.played.trace.arrivals.size(),
             report.methods.front().totals.size(), methods_table(report), arrivals_table(report));
  fmt::print("outputs: {} (largest difference {:.1e} of the largest value)\n{}\n",
             report.runs.outputs.equal() ? "equal to the unsplit models'"
                                         : "NOT equal to the unsplit models'",
             report.runs.outputs.largest_difference, headline(report));
}

Json json_of(const TraceReport& report) {
  Json document = {{"trace", report.played.trace.name},
                   {"unit", "ms"},
                   {"methods", Json::array()},
                   {"outputs",
                    {{"equal", report.runs.outputs.equal()},
                     {"largest_difference", report.runs.outputs.largest_difference}}}};
  for (std::size_t i = 0; i < report.methods.size(); ++i) {
    const Method& method = report.methods[i];
    Json entry = {{"method", method.name},
                  {"predicted", method.predicted ? Json(report.predicted(method)) : Json()},
                  {"measured", method.measured.median},
                  {"spread", method.measured.spread()},
                  {"runs", method.totals},
                  {"models", Json::array()}};
    const auto& states = report.typical(i);
    for (std::size_t j = 0; j < states.size(); ++j) {
      const ArrivalState& state = states[j];
      const bool complete = state.stage == ArrivalStage::complete;
      const bool ran = state.device.valid();
      entry["models"].push_back(
          {{"name", report.played.trace.arrivals[j].name},
           {"arrival", report.played.trace.arrivals[j].time * report.whole.scale()},
           {"device", ran ? Json(report.played.catalogue.device(state.device).name) : Json()},
           {"start", ran ? Json(state.start) : Json()},
           {"end", complete ? Json(state.end) : Json()},
           {"cancelled", state.stage == ArrivalStage::cancelled}});
    }
    document["methods"].push_back(std::move(entry));
  }
  return document;
}

void write_timeline(const std::string& path, const TraceReport& report) {
  std::vector<MeasuredSlice> slices;
  const auto& states = report.typical(0);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].device.valid()) continue;
    slices.push_back({states[i].device, report.played.trace.arrivals[i].name,
                      states[i].start / report.whole.scale(),
                      states[i].end / report.whole.scale()});
  }
  const auto& planned = report.methods.front().predicted->schedule;
  if (planned) write_whole(path, trace_json(planned->problem, planned->plan, slices));
}

void sum_up(Method& method, const PlayedTrace& played,
            const std::vector<std::vector<ArrivalState>>& runs, double scale) {
  for (const auto& states : runs) method.totals.push_back(total_completion(played, states, scale));
  method.measured = measured(method.totals, std::size_t{0});
  const auto distance = [&](double total) { return std::abs(total - method.measured.median); };
  method.typical = static_cast<std::size_t>(std::ranges::min_element(method.totals, {}, distance) -
                                            method.totals.begin());
}

}  // namespace

ExitCode run_trace(const RunTraceOptions& options) {
  const PlayedTrace played =
      read_trace(read_whole(options.trace), options.trace, "", options.output);
  const WholeTrace whole(played, input_name(options.trace));
  const auto models = models_of(played.catalogue);
  std::vector<Method> all = methods();
  for (Method& method : all) {
    if (!method.online) continue;
    method.predicted = run_online(played.catalogue, played.trace, *method.online);
    if (!method.predicted->fault.empty()) {
      throw InputError(input_name(options.trace), "", method.predicted->fault);
    }
  }
  const Interruption interruption;
  ArrivalRuns runs;
  {
    StatusLine status(!options.output.quiet && !options.output.json);
    const auto rule = [&](std::size_t number) -> ArrivalRule {
      if (!all[number].online) return TogetherRule(whole);
      const auto planned = std::make_shared<PlannedRule>(whole, *all[number].online);
      return [planned](double now, std::span<const ArrivalState> states) {
        return (*planned)(now, states);
      };
    };
    try {
      runs =
          run_arrivals(played.catalogue, models, arriving(played, whole.scale()), all.size(), rule,
                       {.repeat = options.repeat,
                        .seed = options.seed,
                        .stop = interruption.flag(),
                        .progress = [&](const std::string& what) { status.show(what); }});
    } catch (const std::invalid_argument& error) {
      throw InputError(input_name(options.trace), "",
                       fmt::format("cannot be run here: {}", error.what()));
    }
  }
  if (std::ranges::any_of(runs.states, [](const auto& of_rule) { return of_rule.empty(); })) {
    fmt::print(stderr, "placewright: interrupted before every method had run once\n");
    return ExitCode::no;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum_up(all[i], played, runs.states[i], whole.scale());
  }
  const TraceReport report{played, whole, all, runs};
  if (!options.timeline.empty()) write_timeline(options.timeline, report);
  if (!options.path.empty()) write_whole(options.path, json_of(report).dump(1) + "\n");
  if (options.output.json) {
    print_json(json_of(report));
  } else if (!options.output.quiet) {
    print_text(report);
  }
  return runs.outputs.equal() ? ExitCode::success : ExitCode::no;
}

}  // namespace placewright::cli
