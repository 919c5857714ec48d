// placewright._native: the public C++ interface for Python.
//
// A thin layer: nouns as classes, functions as functions, arrays as NumPy arrays. What is pleasant
// to use is written in Python on top (python/placewright/planning.py). Planning runs in a thread of
// its own with the interpreter lock released, while the calling thread looks for signals: Ctrl-C
// ends it with the best plan so far.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "analysis/limits.h"
#include "analysis/op_moves.h"
#include "evaluate/simulate.h"
#include "formats/catalogue.h"
#include "formats/problem_file.h"
#include "formats/run_file.h"
#include "placewright/placewright.h"
#include "placewright/session.h"
#include "planners/bound_of_problem.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "report/report_page.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace placewright {
namespace {

using Doubles = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using DoubleTable = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
using Indices = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

// A NumPy array that owns its values.
template <class Array, class Value>
Array array_of(std::vector<Value> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<Value>(std::move(values));
  const nb::capsule owner(
      kept, [](void* data) noexcept { delete static_cast<std::vector<Value>*>(data); });
  return Array(kept->data(), shape, owner);
}

ReadOptions read_options(const std::string& format, const std::string& objective,
                         const std::string& cluster) {
  ReadOptions options{.format = format, .cluster = cluster};
  if (!objective.empty()) {
    options.objective = value_named<Objective>(objective);
    if (!options.objective) {
      throw std::invalid_argument("no objective is called '" + objective + "'");
    }
  }
  return options;
}

std::vector<std::string> op_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const OpId op : problem.ops()) names.push_back(problem.op(op).name);
  return names;
}

std::vector<std::string> device_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const DeviceId device : problem.devices()) names.push_back(problem.device(device).name);
  return names;
}

DoubleTable op_times(const Problem& problem) {
  std::vector<double> times;
  for (const OpId op : problem.ops()) {
    for (const DeviceId device : problem.devices()) times.push_back(problem.time(op, device));
  }
  return array_of<DoubleTable>(std::move(times), {problem.op_count(), problem.device_count()});
}

Indices placement_array(const Plan& plan) {
  std::vector<std::int64_t> devices;
  for (const DeviceId device : plan.placement) {
    devices.push_back(static_cast<std::int64_t>(device.index()));
  }
  const std::size_t count = devices.size();
  return array_of<Indices>(std::move(devices), {count});
}

std::optional<Doubles> times_array(const std::optional<Schedule>& schedule,
                                   Table<OpId, double> Schedule::*which) {
  if (!schedule) return std::nullopt;
  const Table<OpId, double>& table = (*schedule).*which;
  return array_of<Doubles>(std::vector<double>(table.begin(), table.end()), {table.size()});
}

std::optional<std::size_t> index_of(DeviceId device) {
  return device.valid() ? std::optional(device.index()) : std::nullopt;
}

std::vector<std::size_t> indices_of(const std::vector<OpId>& ops) {
  std::vector<std::size_t> result;
  for (const OpId op : ops) result.push_back(op.index());
  return result;
}

nb::list transfer_rows(const Plan& plan) {
  nb::list rows;
  if (!plan.schedule) return rows;
  for (const Transfer& transfer : plan.schedule->transfers) {
    rows.append(nb::make_tuple(transfer.tensor.index(), index_of(transfer.from),
                               index_of(transfer.to), transfer.start, transfer.end));
  }
  return rows;
}

nb::list stage_rows(const Plan& plan) {
  nb::list rows;
  for (const Stage& stage : plan.stages) {
    std::vector<std::size_t> devices;
    for (const DeviceId device : stage.devices) devices.push_back(device.index());
    rows.append(nb::make_tuple(devices, indices_of(stage.ops), stage.load));
  }
  return rows;
}

nb::list call_rows(const Plan& plan) {
  nb::list rows;
  for (const Call& call : plan.calls) {
    rows.append(nb::make_tuple(call.device.index(), indices_of(call.ops), call.start, call.end));
  }
  return rows;
}

// Runs `work` in another thread while this one looks for signals. `stop` is set on Ctrl-C.
// Returns whether that happened. The caller holds the interpreter lock.
template <class Work>
auto watched(std::atomic<bool>& stop, Work work) {
  const nb::gil_scoped_release release;
  auto future = std::async(std::launch::async, std::move(work));
  while (future.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      stop = true;
    }
  }
  return future.get();
}

// A Python function that work in another thread tells its progress. What it throws stops the work.
class Listener {
 public:
  Listener(const nb::object& function, std::atomic<bool>& stop)
      : function_(function), stop_(stop) {}

  [[nodiscard]] bool listens() const { return !function_.is_none(); }

  template <class... Values>
  void tell(const Values&... values) {
    const nb::gil_scoped_acquire acquire;
    if (stop_) return;
    try {
      function_(values...);
    } catch (...) {
      thrown_ = std::current_exception();
      stop_ = true;
    }
  }

  // Throws what the function threw or, if Ctrl-C stopped the work, KeyboardInterrupt.
  void throw_if_stopped(bool without_result) const {
    if (thrown_) std::rethrow_exception(thrown_);
    if (!stop_ || !without_result) return;
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }

 private:
  const nb::object& function_;
  std::atomic<bool>& stop_;
  std::exception_ptr thrown_;
};

PlanOutcome solve_watched(const Problem& problem, const std::string& planner,
                          const std::map<std::string, std::string>& options, double seconds,
                          std::optional<std::uint64_t> steps, int threads, std::uint64_t seed,
                          const Plan* start, const nb::object& progress) {
  std::atomic<bool> stop = false;
  Listener listener(progress, stop);
  PlanRequest request{.planner = planner, .start = start};
  request.options.assign(options.begin(), options.end());
  request.budget.seconds = seconds;
  if (steps) request.budget.steps = *steps;
  request.budget.threads = threads;
  request.budget.seed = seed;
  Control::Observer observer;
  if (listener.listens()) {
    observer = [&](const Progress& step) {
      listener.tell(step.planner, step.seconds, step.value, step.lower_bound);
    };
  }
  PlanOutcome outcome = watched(stop, [&] { return solve(problem, request, &stop, observer); });
  listener.throw_if_stopped(!outcome.answer.plan);
  return outcome;
}

// Several planners, the best of their bounds, and how it was proved.
std::tuple<std::vector<PlanOutcome>, double, std::string> compare_watched(
    const Problem& problem, const std::vector<std::string>& planners, double seconds, int threads,
    std::uint64_t seed) {
  std::atomic<bool> stop = false;
  PlanRequest request;
  request.budget.seconds = seconds;
  request.budget.threads = threads;
  request.budget.seed = seed;
  Comparison found = watched(
      stop, [&] { return compare(problem, planning_registry(), planners, request, &stop); });
  return {std::move(found.outcomes), found.bound.lower_bound, found.bound.method};
}

// The bound of the problem itself.
std::pair<double, std::string> bound_watched(const Problem& problem, double seconds) {
  std::atomic<bool> stop = false;
  Budget budget;
  budget.seconds = seconds;
  Certificate found =
      watched(stop, [&] { return bound_of_problem(problem, Control("bound", budget, &stop)); });
  return {found.lower_bound, std::move(found.method)};
}

std::vector<std::pair<std::string, std::string>> findings(const Problem& problem,
                                                          const Plan& plan) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Violation& violation : verify(problem, plan)) {
    rows.emplace_back(name_of(violation.code), violation.message);
  }
  return rows;
}

std::optional<Plan> plan_from_array(
    const Problem& problem,
    const nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig>& devices) {
  Placement placement(devices.shape(0));
  for (std::size_t i = 0; i < devices.shape(0); ++i) {
    if (devices(i) >= 0) placement[OpId{i}] = DeviceId{static_cast<std::size_t>(devices(i))};
  }
  return plan_for(problem, placement);
}

nb::list device_rows(const Problem& problem, const Plan& plan) {
  const Simulation simulation = simulate(problem, plan);
  nb::list rows;
  for (const DeviceId device : problem.devices()) {
    const DeviceSummary& summary = simulation.devices[device];
    nb::dict row;
    row["device"] = problem.device(device).name;
    row["ops"] = summary.ops;
    row["busy"] = summary.busy;
    row["idle"] = summary.idle;
    row["sending"] = summary.sending;
    row["receiving"] = summary.receiving;
    row["resident"] = summary.resident;
    row["peak"] = summary.peak;
    rows.append(row);
  }
  return rows;
}

nb::list path_rows(const Problem& problem, const Plan& plan) {
  nb::list rows;
  for (const PathStep& step : critical_path(problem, plan).steps) {
    nb::dict row;
    row["kind"] = std::string(name_of(step.kind));
    row["what"] =
        step.kind == StepKind::op ? problem.op(OpId{step.index}).name : std::to_string(step.index);
    row["start"] = step.start;
    row["end"] = step.end;
    row["waited_for"] = std::string(name_of(step.waited_for));
    rows.append(row);
  }
  return rows;
}

nb::list move_rows(const Problem& problem, const Plan& plan, const std::string& name) {
  const std::optional<OpId> op = problem.find_op(name);
  if (!op) throw std::invalid_argument("no op is called '" + name + "'");
  nb::list rows;
  for (const OpMove& move : moves_of_op(problem, plan, *op)) {
    nb::dict row;
    row["device"] = problem.device(move.device).name;
    row["value"] = move.value();
    row["obstacle"] = std::string(name_of(move.obstacle));
    row["reason"] = move.reason;
    rows.append(row);
  }
  return rows;
}

std::string page(
    const Problem& problem,
    const std::vector<std::tuple<std::string, const PlanOutcome*, std::string>>& plans) {
  std::vector<ReportedPlan> reported;
  for (const auto& [label, outcome, run] : plans) {
    reported.push_back({label, plan_file_of(*outcome), &problem});
    if (run.empty()) continue;
    ReportedPlan& current = reported.back();
    current.run = parse_run(run, "run");
    const std::string reason = mismatch(*current.run, problem, current.file.plan);
    if (!reason.empty()) throw std::invalid_argument(reason);
  }
  return report_page(reported);
}

// What was made elsewhere, as an outcome: a plan, checked, with the value that it has; or the
// reason why there is none.
PlanOutcome outcome_of(const Problem& problem, std::optional<Plan> plan, const std::string& planner,
                       double seconds, const std::string& reason, double bound,
                       const std::string& proof) {
  if (plan) {
    const std::vector<Violation> wrong = verify(problem, *plan);
    if (!wrong.empty()) throw std::invalid_argument(wrong.front().message);
    bound = std::min(bound, plan->value);  // they differ by rounding at most
  }
  PlanOutcome outcome;
  outcome.answer.plan = std::move(plan);
  outcome.answer.reason = reason;
  outcome.answer.certificate = {.lower_bound = bound, .method = proof};
  outcome.planner = planner;
  outcome.seconds = seconds;
  return outcome;
}

nb::tuple opened(const std::string& path) {
  OpenedPlan plan = open_plan(path);
  return nb::make_tuple(
      nb::cast(new Problem(std::move(plan.problem)), nb::rv_policy::take_ownership),
      nb::cast(std::move(plan.file.plan)));
}

// Nullopt for an empty name.
std::optional<Precision> precision_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<Precision> precision = value_named<Precision>(name);
  if (precision) return precision;
  throw std::invalid_argument("'" + name + "' is no precision: default, f32, bf16 or f16");
}

// `progress` is told what is measured next.
Problem* measure_watched(const std::vector<std::string>& models,
                         const std::vector<std::string>& devices,
                         const std::vector<std::string>& shapes, const std::string& precision,
                         std::size_t repeat, const nb::object& progress) {
  std::atomic<bool> stop = false;
  Listener listener(progress, stop);
  MeasureRequest request{.devices = devices,
                         .shapes = shapes,
                         .precision = precision_named(precision).value_or(Precision::by_default),
                         .repeat = repeat,
                         .stop = &stop};
  if (listener.listens()) {
    request.progress = [&](const std::string& what) { listener.tell(what); };
  }
  try {
    return new Problem(watched(stop, [&] { return measure(models, request); }));
  } catch (const std::runtime_error&) {
    listener.throw_if_stopped(true);
    throw;
  }
}

// Elements as session.h names them, and the values.
using GivenArray = std::pair<std::string, nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>;
using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

Array array_from(const GivenArray& given) {
  const auto& [element, values] = given;
  Array array{.element = element};
  for (std::size_t axis = 0; axis < values.ndim(); ++axis)
    array.shape.push_back(values.shape(axis));
  const auto* first = static_cast<const std::byte*>(values.data());
  array.bytes.assign(first, first + values.nbytes());
  return array;
}

nb::list array_types(const std::vector<ArrayType>& types) {
  nb::list rows;
  for (const auto& [name, element, shape] : types) {
    rows.append(nb::make_tuple(name, element, shape));
  }
  return rows;
}

// For each sample its outputs: name, element, shape and bytes.
nb::list run_samples(Session& session,
                     const std::vector<std::map<std::string, GivenArray>>& given) {
  std::vector<NamedArrays> samples(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (const auto& [name, array] : given[i]) samples[i][name] = array_from(array);
  }
  std::vector<NamedArrays> outputs;
  {
    const nb::gil_scoped_release release;
    outputs = session.run_all(samples);
  }
  nb::list rows;
  for (NamedArrays& sample : outputs) {
    nb::list arrays;
    for (auto& [name, array] : sample) {
      const std::size_t size = array.bytes.size();
      arrays.append(nb::make_tuple(name, array.element, array.shape,
                                   array_of<Bytes>(std::move(array.bytes), {size})));
    }
    rows.append(arrays);
  }
  return rows;
}

}  // namespace
}  // namespace placewright

NB_MODULE(_native, module) {
  using namespace placewright;
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();

  nb::class_<Problem>(module, "Problem")
      .def_static(
          "read",
          [](const std::string& path, const std::string& format, const std::string& objective,
             const std::string& cluster) {
            return new Problem(open_problem(path, read_options(format, objective, cluster)));
          },
          "path"_a, "format"_a = "", "objective"_a = "", "cluster"_a = "",
          nb::rv_policy::take_ownership, unlocked)
      .def_static(
          "parse",
          [](const std::string& text, const std::string& origin) {
            return new Problem(read_problem_text(text, origin));
          },
          "text"_a, "origin"_a, nb::rv_policy::take_ownership, unlocked)
      .def("text", [](const Problem& problem) { return write_problem(problem.draft()); })
      .def("save",
           [](const Problem& problem, const std::string& path) { save_problem(path, problem); })
      .def_prop_ro("name", &Problem::name)
      .def_prop_ro("objective",
                   [](const Problem& p) { return std::string(name_of(p.objective())); })
      .def_prop_ro("unit", [](const Problem& p) { return std::string(name_of(p.unit())); })
      .def_prop_ro("op_names", &op_names)
      .def_prop_ro("device_names", &device_names)
      .def_prop_ro("times", &op_times, nb::rv_policy::automatic);

  nb::class_<Plan>(module, "Plan")
      .def_ro("value", &Plan::value)
      .def_prop_ro("placement", &placement_array, nb::rv_policy::automatic)
      .def_prop_ro(
          "start", [](const Plan& plan) { return times_array(plan.schedule, &Schedule::start); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "end", [](const Plan& plan) { return times_array(plan.schedule, &Schedule::end); },
          nb::rv_policy::automatic)
      .def_prop_ro("transfers", &transfer_rows)
      .def_prop_ro("stages", &stage_rows)
      .def_prop_ro("calls", &call_rows);

  nb::class_<PlanOutcome>(module, "Result")
      .def_prop_ro("status",
                   [](const PlanOutcome& o) { return std::string(name_of(o.answer.status())); })
      .def_prop_ro("plan", [](const PlanOutcome& o) { return o.answer.plan; })
      .def_prop_ro("lower_bound",
                   [](const PlanOutcome& o) { return o.answer.certificate.lower_bound; })
      .def_prop_ro("bound_method", [](const PlanOutcome& o) { return o.answer.certificate.method; })
      .def_prop_ro("gap",
                   [](const PlanOutcome& o) {
                     return o.answer.plan ? gap(o.value(), o.answer.certificate.lower_bound)
                                          : kInfinity;
                   })
      .def_prop_ro("reason", [](const PlanOutcome& o) { return o.answer.reason; })
      .def_ro("notes", &PlanOutcome::notes)
      .def_ro("planner", &PlanOutcome::planner)
      .def_ro("seconds", &PlanOutcome::seconds)
      .def_ro("seed", &PlanOutcome::seed);

  module.def("version", [] { return std::string(library_version()); });
  module.def("planners", [] {
    nb::list rows;
    for (const PlannerEntry& planner : available_planners()) {
      std::vector<std::string> objectives;
      for (const Objective objective : planner.objectives) {
        objectives.emplace_back(name_of(objective));
      }
      std::map<std::string, std::string> options;
      for (const Option& option : planner.options) options.emplace(option.name, option.text);
      rows.append(nb::make_tuple(planner.name, planner.summary, objectives,
                                 planner.strength == Strength::exact, options));
    }
    return rows;
  });
  module.def("catalogue", [] {
    nb::dict devices;
    for (const CatalogueDevice& device : catalogue().devices) {
      const PeakRates& peak = device.rates;
      devices[device.name.c_str()] =
          nb::make_tuple(device.memory, peak.flops, peak.bandwidth, peak.launch, peak.half_flops);
    }
    nb::dict links;
    for (const CatalogueLink& link : catalogue().links) {
      links[link.name.c_str()] = nb::make_tuple(link.latency, link.bandwidth);
    }
    return nb::make_tuple(devices, links);
  });
  module.def(
      "estimated_seconds",
      [](double peak_flops, double bandwidth, double launch, double half_flops, double flops,
         double bytes, bool of_matrices, bool in_half) {
        const PeakRates peak{.flops = peak_flops,
                             .bandwidth = bandwidth,
                             .launch = launch,
                             .half_flops = half_flops};
        return peak.estimated_seconds(
            {.flops = flops, .bytes = bytes, .of_matrices = of_matrices, .in_half = in_half});
      },
      "peak_flops"_a, "bandwidth"_a, "launch"_a, "half_flops"_a, "flops"_a, "bytes"_a,
      "of_matrices"_a, "in_half"_a);
  module.def("solve", &solve_watched, "problem"_a, "planner"_a, "options"_a, "seconds"_a,
             "steps"_a.none(), "threads"_a, "seed"_a, "start"_a.none(), "progress"_a.none());
  module.def("compare", &compare_watched, "problem"_a, "planners"_a, "seconds"_a, "threads"_a,
             "seed"_a);
  module.def("lower_bound", &bound_watched, "problem"_a, "seconds"_a);
  module.def("check", &findings, unlocked);
  module.def("plan_for", &plan_from_array);
  module.def("result_of", &outcome_of, "problem"_a, "plan"_a.none(), "planner"_a, "seconds"_a = 0.0,
             "reason"_a = "", "bound"_a = 0.0, "proof"_a = "");
  module.def("simulate", &device_rows);
  module.def("critical_path", &path_rows);
  module.def("moves", &move_rows);
  module.def("report", &page);
  module.def("save_result", [](const std::string& path, const Problem& problem,
                               const PlanOutcome& outcome) { save_plan(path, problem, outcome); });
  module.def("open_plan", &opened);

  module.def("measure", &measure_watched, "models"_a, "devices"_a, "shapes"_a, "precision"_a,
             "repeat"_a, "progress"_a.none(), nb::rv_policy::take_ownership);
  nb::class_<Session>(module, "Session")
      .def(
          "__init__",
          [](Session* session, const Problem& problem, const Plan& plan,
             const std::string& precision) {
            new (session) Session(problem, plan, precision_named(precision));
          },
          unlocked)
      .def("add_variant", &Session::add_variant, nb::arg("problem"), nb::arg("plan"))
      .def_prop_ro("inputs", [](const Session& session) { return array_types(session.inputs()); })
      .def_prop_ro("outputs", [](const Session& session) { return array_types(session.outputs()); })
      .def("run_all", &run_samples);
}
