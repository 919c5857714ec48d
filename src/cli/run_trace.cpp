#include "cli/run_trace.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/online.h"
#include "backends/opened_models.h"
#include "cli/comparison.h"
#include "cli/interruption.h"
#include "cli/measured_text.h"
#include "cli/record_table.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/json_text.h"
#include "formats/text_file.h"
#include "formats/trace_export.h"
#include "planners/flow/model_shares.h"
#include "problem/exclusion.h"
#include "problem/measured.h"
#include "problem/time_unit.h"
#include "running/arrival_run.h"
#include "running/arrival_totals.h"
#include "running/practice.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

// What the backend gives by itself: every model started when it arrives, with all threads.
constexpr const char* kTogether = "together";
// Of one model at once in it, each with memory of its own; a further one waits for one of them.
constexpr std::size_t kMostCopies = 8;

// Times are those of a practice right before, which are off by some percent: a smaller gain than
// this may be none.
constexpr OnlineOptions kForReal{.least_gain = 0.08, .whole = true, .one_window = true};

// One way to decide, and what came of it.
struct Method {
  std::string name;
  std::optional<OnlineMethod> online;  // nullopt: kTogether
  std::optional<OnlineRun> predicted;
  ArrivalTotals made;

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

// Asks an OnlinePlanner at every arrival and cancellation, with what really happened until then. In
// between the decision stands: when an inference ends, what comes next on its cores starts at once,
// and they do not idle while somebody thinks.
class PlannedRule {
 public:
  PlannedRule(const WholeTrace& trace, OnlineMethod method)
      : trace_(trace), planner_(trace.problem(), method, kForReal) {}

  std::vector<ArrivalStart> operator()(double milliseconds, std::span<const ArrivalState> states) {
    std::size_t arrived = 0;
    std::size_t cancelled = 0;
    for (const ArrivalState& state : states) {
      arrived += state.stage != ArrivalStage::coming ? 1 : 0;
      cancelled += state.stage == ArrivalStage::cancelled ? 1 : 0;
    }
    if (std::exchange(seen_, {arrived, cancelled}) != std::pair{arrived, cancelled}) {
      decide(milliseconds, states);
    }
    return next_starts(states);
  }

 private:
  void decide(double milliseconds, std::span<const ArrivalState> states) {
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
                             : predicted_end(op, state.device, schedule.start[op], now);
    }
    const auto decision = planner_.decide(placement, schedule, now, known);
    if (!decision) throw RuntimeError("no device has room for the models that have arrived");
    turns_.clear();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const OpId op = trace_.op(i);
      if (states[i].stage == ArrivalStage::waiting) turns_.push_back({i, decision->placement[op]});
    }
    std::ranges::stable_sort(turns_, {}, [&](const ArrivalStart& turn) {
      return decision->schedule.start[trace_.op(turn.arrival)];
    });
  }

  // Whose cores are free, and wanted by nobody whose turn is before.
  std::vector<ArrivalStart> next_starts(std::span<const ArrivalState> states) {
    std::vector<DeviceId> taken;
    for (const ArrivalState& state : states) {
      if (state.stage == ArrivalStage::started) taken.push_back(state.device);
    }
    std::vector<ArrivalStart> starts;
    std::erase_if(turns_, [&](const ArrivalStart& turn) {
      const bool free = std::ranges::none_of(taken, [&](DeviceId device) {
        return exclude_each_other(trace_.problem(), device, turn.device);
      });
      taken.push_back(turn.device);
      if (free) starts.push_back(turn);
      return free;
    });
    return starts;
  }

  // When it was predicted to, or if that is over soon: as long as it runs, its cores are not free.
  [[nodiscard]] double predicted_end(OpId op, DeviceId device, double start, double now) const {
    constexpr double kSoon = 0.01;  // of its time
    const double time = trace_.problem().time(op, device);
    return std::max(start + time, now + kSoon * time);
  }

  const WholeTrace& trace_;
  OnlinePlanner planner_;
  std::pair<std::size_t, std::size_t> seen_;  // arrivals and cancellations
  std::vector<ArrivalStart> turns_;           // of those that wait, as decided
};

ArrivalRule planned_rule(const WholeTrace& trace, OnlineMethod method) {
  const auto rule = std::make_shared<PlannedRule>(trace, method);
  return [rule](double now, std::span<const ArrivalState> states) { return (*rule)(now, states); };
}

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

// By arrival: the device that is fastest for its model.
std::vector<DeviceId> fastest_devices(const Problem& problem) {
  const ModelShares times(problem);
  std::vector<DeviceId> devices;
  for (const ModelId model : problem.models()) devices.push_back(times.fastest(model));
  return devices;
}

// Every device, and on the fastest as many copies of the model as kTogether may start at once.
std::vector<ArrivalPlace> places_for(const Problem& catalogue,
                                     std::span<const ArrivingModel> arrivals,
                                     const std::vector<DeviceId>& fastest) {
  std::vector<ArrivalPlace> places = places_of(catalogue, arrivals);
  for (ArrivalPlace& place : places) {
    std::size_t together = 0;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (arrivals[i].model == place.model && fastest[i] == place.device) ++together;
    }
    place.copies = std::clamp(together, std::size_t{1}, kMostCopies);
  }
  return places;
}

struct TraceReport {
  const PlayedTrace& played;
  const WholeTrace& whole;
  const std::vector<PractisedTime>& practice;
  const std::vector<Method>& methods;
  const ArrivalRuns& runs;

  [[nodiscard]] double predicted(const Method& method) const {
    return method.predicted->total_completion * whole.scale();
  }
  [[nodiscard]] const std::vector<ArrivalState>& typical(std::size_t method) const {
    return runs.rounds[method][methods[method].made.typical].states;
  }
};

// What became of one arrival; moments in milliseconds.
struct ArrivalRow {
  const TraceArrival& arrival;
  double time;
  ArrivalState state;
  std::string device;                        // empty: it never ran
  std::optional<double> predicted_end = {};  // nullopt: not predicted, or cancelled
};

// Of the method's typical run.
std::vector<ArrivalRow> arrival_rows(const TraceReport& report, const Method& method) {
  const double scale = report.whole.scale();
  const auto& states = report.typical(static_cast<std::size_t>(&method - report.methods.data()));
  std::vector<ArrivalRow> rows;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TraceArrival& arrival = report.played.trace.arrivals[i];
    const DeviceId device = states[i].device;
    ArrivalRow& row = rows.emplace_back(arrival, arrival.time * scale, states[i], std::string());
    if (device.valid()) row.device = report.played.catalogue.device(device).name;
    if (method.predicted && method.predicted->models[i].complete) {
      row.predicted_end = method.predicted->models[i].completion * scale;
    }
  }
  return rows;
}

RecordTable<ArrivalRow> arrival_table() {
  const auto moment = time_in(TimeUnit::milliseconds);
  const auto if_so = [](bool known, const auto& value) { return known ? Json(value) : Json(); };
  const auto cancelled = [](const ArrivalRow& row) {
    return row.state.stage == ArrivalStage::cancelled;
  };
  return RecordTable<ArrivalRow>({
      {"name", "model", words(), [](const auto& row) { return row.arrival.name; }},
      {"arrival", "arrives", moment, [](const auto& row) { return row.time; }},
      {"device", "device", words(),
       [=](const auto& row) { return if_so(!row.device.empty(), row.device); }},
      {"start", "starts", moment,
       [=](const auto& row) { return if_so(!row.device.empty(), row.state.start); }},
      {"end", "ends", moment,
       [=](const auto& row) {
         return if_so(row.state.stage == ArrivalStage::complete, row.state.end);
       }},
      {"predicted", "predicted", moment,
       [=](const auto& row) {
         return if_so(row.predicted_end.has_value(), row.predicted_end.value_or(0));
       }},
      {"cancelled", kNoTitle, words(), cancelled},
      {kNoKey, "", words(), [=](const auto& row) { return cancelled(row) ? "cancelled" : ""; }},
  });
}

RecordTable<Method> methods_table(const TraceReport& report) {
  const Method& first = report.methods.front();
  const auto predicted = [&](const Method& method) {
    return method.predicted ? Json(report.predicted(method)) : Json();
  };
  return RecordTable<Method>({
      {"method", "method", words(), [](const auto& method) { return method.name; }},
      {"predicted", "predicted", time_in(TimeUnit::milliseconds), predicted},
      {"measured", kNoTitle, time_in(TimeUnit::milliseconds),
       [](const auto& method) { return method.made.measured.median; }},
      {kNoKey, "measured", words(Align::right),
       [](const auto& method) { return measured_text(method.made.measured); }},
      {"valid", kNoTitle, words(), [](const auto& method) { return method.made.measured.valid(); }},
      {"watched", kNoTitle, words(),
       [](const auto& method) { return method.made.measured.watched; }},
      {"kept", kNoTitle, count(), [](const auto& method) { return method.made.measured.kept; }},
      {"rejected", kNoTitle, count(),
       [](const auto& method) { return method.made.measured.rejected; }},
      {kNoKey, "prediction is off by", scaled(100, "{:+.1f} %"),
       [=](const auto& method) {
         const double own = method.made.measured.median;
         return method.predicted && own > 0
                    ? Json(predicted(method).template get<double>() / own - 1)
                    : Json();
       }},
      {"spread", "spread", percent(),
       [](const auto& method) { return method.made.measured.spread(); }},
      {kNoKey, "to talos", number("{:.3f} x"),
       [&](const auto& method) {
         return method.made.measured.median / first.made.measured.median;
       }},
      {"decides_as", "decides as", words(),
       [&](const auto& method) {
         const auto& alike = method.made.alike;
         return alike ? Json(report.methods[*alike].name) : Json();
       }},
      {"runs", kNoTitle, words(), [](const auto& method) { return method.made.totals; }},
      {"models", kNoTitle, words(),
       [&](const auto& method) { return arrival_table().json(arrival_rows(report, method)); }},
  });
}

// How talos does beside the better of what the backend gives by itself.
std::string headline(const TraceReport& report) {
  auto defaults = report.methods | std::views::filter(&Method::is_default);
  const Method& best = *std::ranges::min_element(
      defaults, {}, [](const Method& method) { return method.made.measured.median; });
  const Method& own = report.methods.front();
  const std::string text = "total completion: " + measured_text(own.made.measured);
  if (!own.made.measured.valid() || !best.made.measured.valid()) {
    return text + fmt::format("; not compared with {}: one of the two measurements is not valid",
                              best.name);
  }
  return text + "; " +
         comparison_text(best.made.measured.median / own.made.measured.median,
                         fmt::format("{} ({}), the best without a plan", best.name,
                                     measured_text(best.made.measured)));
}

// How far the practice is from the profile, over all models and kinds.
std::string practice_text(const std::vector<PractisedTime>& practice) {
  std::vector<double> ratios;
  for (const PractisedTime& time : practice) {
    if (time.stated > 0) ratios.push_back(time.measured / time.stated);
  }
  if (ratios.empty()) return "no model was practised";
  const auto [least, most] = std::ranges::minmax(ratios);
  return fmt::format(
      "in practice, beside other models, each model took {:.2f} to {:.2f} times as long as its "
      "profile says",
      least, most);
}

RecordTable<PractisedTime> practice_table(const Problem& catalogue) {
  return RecordTable<PractisedTime>({
      {"model", "model", words(),
       [&](const auto& time) { return catalogue.model(ModelId{time.model}).name; }},
      {"kind", "kind", words(),
       [&](const auto& time) { return catalogue.draft().cluster.kinds[time.kind.index()].name; }},
      {"profile", "profile", time_in(TimeUnit::milliseconds),
       [](const auto& time) { return time.stated; }},
      {"measured", "measured", time_in(TimeUnit::milliseconds),
       [](const auto& time) { return time.measured; }},
  });
}

std::string outputs_text(const OutputCheck& outputs) {
  if (!outputs.compared) return "not compared";
  return fmt::format(
      "{} (largest difference {:.1e} of the largest value)",
      outputs.equal() ? "equal to the unsplit models'" : "NOT equal to the unsplit models'",
      outputs.largest_difference);
}

void print_text(const TraceReport& report) {
  const Method& first = report.methods.front();
  fmt::print("{}: {} arrivals, each method run {} times\n{}\n\n{}\n{}\n",
             printable(report.played.trace.name), report.played.trace.arrivals.size(),
             first.made.totals.size(), practice_text(report.practice),
             methods_table(report).text(report.methods),
             arrival_table().text(arrival_rows(report, first)));
  fmt::print("outputs: {}\n{}\n", outputs_text(report.runs.outputs), headline(report));
}

Json json_of(const TraceReport& report) {
  Json document = {{"trace", report.played.trace.name},
                   {"unit", "ms"},
                   {"practice", practice_table(report.played.catalogue).json(report.practice)},
                   {"methods", methods_table(report).json(report.methods)}};
  const OutputCheck& outputs = report.runs.outputs;
  if (outputs.compared) {
    document["outputs"] = {{"equal", outputs.equal()},
                           {"largest_difference", outputs.largest_difference}};
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

// (Starts of kTogether overlap, so that order and devices do not tell all.)
void sum_up(std::vector<Method>& methods, const PlayedTrace& played, const ArrivalRuns& runs,
            double scale) {
  std::vector<WeightedArrival> arrivals;
  for (const TraceArrival& arrival : played.trace.arrivals) {
    arrivals.push_back({arrival.time * scale, arrival.weight});
  }
  std::vector<char> comparable;
  for (const Method& method : methods) comparable.push_back(method.online ? 1 : 0);
  std::vector<ArrivalTotals> totals = totals_of(runs, arrivals, comparable);
  for (std::size_t i = 0; i < methods.size(); ++i) methods[i].made = std::move(totals[i]);
}

// Predicts what each method comes to.
void predict(std::vector<Method>& methods, const PlayedTrace& played, const std::string& path) {
  for (Method& method : methods) {
    if (!method.online) continue;
    method.predicted = run_online(played.catalogue, played.trace, *method.online, kForReal);
    if (!method.predicted->fault.empty()) {
      throw InputError(input_name(path), "", method.predicted->fault);
    }
  }
}

// What came of a trace. The times of `played` are those of the practice.
struct Performance {
  PlayedTrace played;
  std::vector<PractisedTime> practice;
  std::vector<Method> methods;
  ArrivalRuns runs;
};

// Every method as often as asked, after a practice. Nullopt: interrupted before all methods had run
// once.
std::optional<Performance> performed(const PlayedTrace& profiled, const RunTraceOptions& options) {
  const Interruption interruption;
  StatusLine status(!options.output.quiet && !options.output.json);
  const auto show = [&](const std::string& what) { status.show(what); };
  const auto models = models_of(profiled.catalogue);
  const WholeTrace whole(profiled, input_name(options.trace));
  const std::vector<ArrivingModel> arrivals = arriving(profiled, whole.scale());
  const std::vector<DeviceId> fastest = fastest_devices(whole.problem());
  const auto places = places_for(profiled.catalogue, arrivals, fastest);
  ArrivalRunner runner(profiled.catalogue, models, arrivals, places,
                       {.seed = options.seed, .stop = interruption.flag(), .progress = show});
  auto practice = practise(runner, profiled.catalogue, arrivals, places, show);
  if (!practice) return std::nullopt;

  Performance result{
      .played = {Problem(as_practised(profiled.catalogue, *practice)), profiled.trace},
      .practice = std::move(*practice),
      .methods = methods(),
      .runs = {}};
  predict(result.methods, result.played, options.trace);
  const WholeTrace practised(result.played, input_name(options.trace));
  const auto rule = [&](std::size_t number) {
    const auto online = result.methods[number].online;
    return online ? planned_rule(practised, *online) : all_at_once(fastest);
  };
  result.runs = run_arrivals(runner, result.methods.size(), rule, options.repeat, [&](double done) {
    show(fmt::format("running {:.0f} %", 100 * done));
  });
  const auto never = [](const auto& rounds) { return rounds.empty(); };
  if (std::ranges::any_of(result.runs.rounds, never)) return std::nullopt;
  sum_up(result.methods, result.played, result.runs, whole.scale());
  return result;
}

}  // namespace

ExitCode run_trace(const RunTraceOptions& options) {
  const PlayedTrace profiled =
      read_trace(read_whole(options.trace), options.trace, "", options.output);
  // What fits nowhere is told before anything is compiled.
  std::vector<Method> all = methods();
  predict(all, profiled, options.trace);
  std::optional<Performance> performance;
  try {
    performance = performed(profiled, options);
  } catch (const std::invalid_argument& error) {
    throw InputError(input_name(options.trace), "",
                     fmt::format("cannot be run here: {}", error.what()));
  }
  if (!performance) {
    tell("placewright: interrupted before every method had run once\n");
    return ExitCode::no;
  }
  const auto& [played, practice, done, runs] = *performance;
  const WholeTrace whole(played, input_name(options.trace));
  const TraceReport report{played, whole, practice, done, runs};
  if (!options.timeline.empty()) write_timeline(options.timeline, report);
  if (!options.path.empty()) write_whole(options.path, json_text(json_of(report), 1) + '\n');
  if (options.output.json) {
    print_json(json_of(report));
  } else if (!options.output.quiet) {
    print_text(report);
  }
  const Measured& own = done.front().made.measured;
  if (!own.valid() && !runs.interrupted) complain(own, "--repeat 20");
  return runs.outputs.equal() && (own.valid() || runs.interrupted) ? ExitCode::success
                                                                   : ExitCode::no;
}

}  // namespace placewright::cli
