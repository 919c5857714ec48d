#include "solvers/cp_sat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "plugins/shared_object.h"

namespace placewright::solvers {
namespace {

// Field numbers of OR-Tools' cp_model.proto and sat_parameters.proto.
enum class Model : protozero::pbf_tag_type {
  variables = 2,
  constraints = 3,
  objective = 4,
  solution_hint = 6,
};
enum class Variable : protozero::pbf_tag_type { domain = 2 };
enum class Constraint : protozero::pbf_tag_type {
  enforcement_literal = 2,
  bool_or = 3,
  bool_and = 4,
  linear = 12,
  interval = 19,
  no_overlap = 20,
  cumulative = 22,
  at_most_one = 26,
  lin_max = 27,
  exactly_one = 29,
};
enum class Literals : protozero::pbf_tag_type { literals = 1 };
enum class Interval : protozero::pbf_tag_type { start = 4, end = 5, size = 6 };
enum class NoOverlap : protozero::pbf_tag_type { intervals = 1 };
enum class Cumulative : protozero::pbf_tag_type { capacity = 1, intervals = 2, demands = 3 };
enum class Expression : protozero::pbf_tag_type { vars = 1, coeffs = 2, offset = 3 };
enum class Linear : protozero::pbf_tag_type { vars = 1, coeffs = 2, domain = 3 };
enum class LinMax : protozero::pbf_tag_type { target = 1, expressions = 2 };
enum class Objective : protozero::pbf_tag_type { vars = 1, offset = 2, coeffs = 4 };
enum class Hint : protozero::pbf_tag_type { vars = 1, values = 2 };
enum class Parameters : protozero::pbf_tag_type {
  random_seed = 31,
  max_time = 36,
  log_search_progress = 41,
  max_deterministic_time = 67,
  presolve = 86,
  linearization_level = 90,
  probing_level = 110,
  catch_sigint = 135,
  interleave_search = 136,
  relative_gap = 160,
  log_to_stdout = 186,
  log_to_response = 187,
  presolve_inclusion_work = 201,
  workers = 206,
  ignore_subsolvers = 209,
};
enum class Response : protozero::pbf_tag_type {
  status = 1,
  solution = 2,
  objective = 3,
  best_bound = 4,
  deterministic_time = 17,
  solution_info = 20,
  log = 26,
};
enum class ResponseStatus {
  unknown = 0,
  model_invalid = 1,
  feasible = 2,
  infeasible = 3,
  optimal = 4
};

template <typename Tags>
using Builder = protozero::pbf_builder<Tags>;

std::vector<std::int32_t> indices(std::span<const CpTerm> terms) {
  std::vector<std::int32_t> result;
  result.reserve(terms.size());
  for (const CpTerm& term : terms) result.push_back(term.variable.index);
  return result;
}

std::vector<std::int64_t> coefficients(std::span<const CpTerm> terms) {
  std::vector<std::int64_t> result;
  result.reserve(terms.size());
  for (const CpTerm& term : terms) result.push_back(term.coefficient);
  return result;
}

std::vector<std::int32_t> codes(std::span<const CpLiteral> literals) {
  std::vector<std::int32_t> result;
  result.reserve(literals.size());
  for (const CpLiteral literal : literals) result.push_back(literal.code());
  return result;
}

std::vector<std::int32_t> indices(std::span<const CpInterval> intervals) {
  std::vector<std::int32_t> result;
  result.reserve(intervals.size());
  for (const CpInterval interval : intervals) result.push_back(interval.index);
  return result;
}

// Domains are flat lists of closed ranges. `shift` moves an expression's constant to the other
// side; open ends stay.
std::vector<std::int64_t> flatten(std::span<const CpRange> domain, std::int64_t shift = 0) {
  std::vector<std::int64_t> result;
  const auto moved = [shift](std::int64_t end) {
    return end == kCpMinimum || end == kCpMaximum ? end : end - shift;
  };
  for (const CpRange& range : domain) {
    result.push_back(moved(range.lower));
    result.push_back(moved(range.upper));
  }
  return result;
}

template <typename Tags>
void write_ints(Builder<Tags>& message, Tags tag, const std::vector<std::int32_t>& values) {
  message.add_packed_int32(tag, values.begin(), values.end());
}
template <typename Tags>
void write_ints(Builder<Tags>& message, Tags tag, const std::vector<std::int64_t>& values) {
  message.add_packed_int64(tag, values.begin(), values.end());
}

template <typename Tags>
void write_expression(Builder<Tags>& parent, Tags tag, const CpExpression& expression) {
  Builder<Expression> message(parent, tag);
  write_ints(message, Expression::vars, indices(expression.terms));
  write_ints(message, Expression::coeffs, coefficients(expression.terms));
  message.add_int64(Expression::offset, expression.offset);
}

void write_linear(Builder<Constraint>& constraint, const CpExpression& sum,
                  std::span<const CpRange> domain) {
  Builder<Linear> linear(constraint, Constraint::linear);
  write_ints(linear, Linear::vars, indices(sum.terms));
  write_ints(linear, Linear::coeffs, coefficients(sum.terms));
  write_ints(linear, Linear::domain, flatten(domain, sum.offset));
}

// The expression a - b, as a sum.
void subtract(CpExpression& from, const CpExpression& what) {
  for (const CpTerm& term : what.terms) from.terms.push_back({term.variable, -term.coefficient});
  from.offset -= what.offset;
}

// Appends one constraint to the body; `write` fills it.
template <typename Write>
void append_constraint(std::string& body, std::span<const CpLiteral> if_all, Write write) {
  Builder<Model> model(body);
  Builder<Constraint> constraint(model, Model::constraints);
  if (!if_all.empty()) write_ints(constraint, Constraint::enforcement_literal, codes(if_all));
  write(constraint);
}

void append_literals(std::string& body, Constraint kind, std::span<const CpLiteral> literals,
                     std::span<const CpLiteral> if_all = {}) {
  append_constraint(body, if_all, [&](Builder<Constraint>& constraint) {
    Builder<Literals> message(constraint, kind);
    write_ints(message, Literals::literals, codes(literals));
  });
}

std::span<const CpLiteral> as_span(const std::optional<CpLiteral>& literal) {
  return literal ? std::span<const CpLiteral>(&*literal, 1) : std::span<const CpLiteral>();
}

}  // namespace

CpVariable CpModel::add_bool() {
  return add_integer(0, 1);
}

CpVariable CpModel::add_integer(std::int64_t lower, std::int64_t upper) {
  const CpRange range{lower, upper};
  return add_integer(std::span(&range, 1));
}

CpVariable CpModel::add_integer(std::span<const CpRange> domain) {
  Builder<Model> model(body_);
  Builder<Variable> variable(model, Model::variables);
  write_ints(variable, Variable::domain, flatten(domain));
  hints_.emplace_back();
  return {variables() - 1};
}

CpInterval CpModel::add_interval(const CpExpression& start, std::int64_t size,
                                 std::optional<CpLiteral> present) {
  CpExpression end = start;
  end.offset += size;
  append_constraint(body_, as_span(present), [&](Builder<Constraint>& constraint) {
    Builder<Interval> interval(constraint, Constraint::interval);
    write_expression(interval, Interval::start, start);
    write_expression(interval, Interval::end, end);
    write_expression(interval, Interval::size, CpExpression(size));
  });
  return {constraints_++};
}

CpInterval CpModel::add_interval(const CpExpression& start, const CpExpression& size,
                                 const CpExpression& end, std::optional<CpLiteral> present) {
  // CP-SAT takes the relation between the three on trust; it has to be a constraint of its own.
  CpExpression difference = start;
  difference.terms.insert(difference.terms.end(), size.terms.begin(), size.terms.end());
  difference.offset += size.offset;
  subtract(difference, end);
  add_linear(difference, CpRange{0, 0}, as_span(present));
  append_constraint(body_, as_span(present), [&](Builder<Constraint>& constraint) {
    Builder<Interval> interval(constraint, Constraint::interval);
    write_expression(interval, Interval::start, start);
    write_expression(interval, Interval::end, end);
    write_expression(interval, Interval::size, size);
  });
  return {constraints_++};
}

void CpModel::add_no_overlap(std::span<const CpInterval> intervals) {
  append_constraint(body_, {}, [&](Builder<Constraint>& constraint) {
    Builder<NoOverlap> message(constraint, Constraint::no_overlap);
    write_ints(message, NoOverlap::intervals, indices(intervals));
  });
  ++constraints_;
}

void CpModel::add_cumulative(const CpExpression& capacity, std::span<const CpInterval> intervals,
                             std::span<const CpExpression> demands) {
  append_constraint(body_, {}, [&](Builder<Constraint>& constraint) {
    Builder<Cumulative> message(constraint, Constraint::cumulative);
    write_expression(message, Cumulative::capacity, capacity);
    write_ints(message, Cumulative::intervals, indices(intervals));
    for (const CpExpression& demand : demands) {
      write_expression(message, Cumulative::demands, demand);
    }
  });
  ++constraints_;
}

void CpModel::add_linear(const CpExpression& sum, CpRange range,
                         std::span<const CpLiteral> if_all) {
  add_linear(sum, std::span<const CpRange>(&range, 1), if_all);
}

void CpModel::add_linear(const CpExpression& sum, std::span<const CpRange> domain,
                         std::span<const CpLiteral> if_all) {
  append_constraint(body_, if_all, [&](Builder<Constraint>& constraint) {
    write_linear(constraint, sum, domain);
  });
  ++constraints_;
}

void CpModel::add_bool_or(std::span<const CpLiteral> literals, std::span<const CpLiteral> if_all) {
  append_literals(body_, Constraint::bool_or, literals, if_all);
  ++constraints_;
}

void CpModel::add_bool_and(std::span<const CpLiteral> literals, std::span<const CpLiteral> if_all) {
  append_literals(body_, Constraint::bool_and, literals, if_all);
  ++constraints_;
}

void CpModel::add_at_most_one(std::span<const CpLiteral> literals) {
  append_literals(body_, Constraint::at_most_one, literals);
  ++constraints_;
}

void CpModel::add_exactly_one(std::span<const CpLiteral> literals) {
  append_literals(body_, Constraint::exactly_one, literals);
  ++constraints_;
}

void CpModel::add_maximum(const CpExpression& target, std::span<const CpExpression> expressions) {
  append_constraint(body_, {}, [&](Builder<Constraint>& constraint) {
    Builder<LinMax> message(constraint, Constraint::lin_max);
    write_expression(message, LinMax::target, target);
    for (const CpExpression& expression : expressions) {
      write_expression(message, LinMax::expressions, expression);
    }
  });
  ++constraints_;
}

void CpModel::minimize(const CpExpression& objective) {
  objective_ = objective;
}

void CpModel::set_hint(CpVariable variable, std::int64_t value) {
  hints_.at(static_cast<std::size_t>(variable.index)) = value;
}

// Reads a model's private parts to write the whole message.
struct CpEncoding {
  static std::string encode(const CpModel& model) {
    std::string bytes = model.body_;
    Builder<Model> message(bytes);
    if (model.objective_) {
      Builder<Objective> objective(message, Model::objective);
      write_ints(objective, Objective::vars, indices(model.objective_->terms));
      objective.add_double(Objective::offset, static_cast<double>(model.objective_->offset));
      write_ints(objective, Objective::coeffs, coefficients(model.objective_->terms));
    }
    std::vector<std::int32_t> hinted;
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < model.hints_.size(); ++i) {
      if (!model.hints_[i]) continue;
      hinted.push_back(static_cast<std::int32_t>(i));
      values.push_back(*model.hints_[i]);
    }
    if (!hinted.empty()) {
      Builder<Hint> hint(message, Model::solution_hint);
      write_ints(hint, Hint::vars, hinted);
      write_ints(hint, Hint::values, values);
    }
    return bytes;
  }
};

namespace {

std::string encode(const CpLimits& limits) {
  std::string bytes;
  Builder<Parameters> message(bytes);
  if (std::isfinite(limits.time_seconds)) {
    message.add_double(Parameters::max_time, std::max(0.0, limits.time_seconds));
  }
  if (std::isfinite(limits.deterministic_time)) {
    message.add_double(Parameters::max_deterministic_time,
                       std::max(0.0, limits.deterministic_time));
  }
  message.add_int32(Parameters::random_seed, std::max(0, limits.seed));
  message.add_int32(Parameters::workers, std::max(1, limits.workers));
  message.add_double(Parameters::relative_gap, std::max(0.0, limits.relative_gap));
  message.add_bool(Parameters::presolve, limits.presolve);
  // Version 9.15 loses solutions in this step of presolve when coefficients are large, and then
  // proves what is not so (github.com/google/or-tools/issues/5293).
  message.add_int64(Parameters::presolve_inclusion_work, 0);
  // Its search in windows of resources takes the whole problem for solved when a window is: with a
  // cumulative over many optional intervals it proves what is not so.
  message.add_string(Parameters::ignore_subsolvers, "scheduling_resource_windows_lns");
  message.add_int32(Parameters::probing_level, limits.probing_level);
  message.add_int32(Parameters::linearization_level, limits.linearization_level);
  message.add_bool(Parameters::interleave_search, limits.take_turns);
  message.add_bool(Parameters::log_search_progress, limits.keep_log);
  message.add_bool(Parameters::log_to_stdout, false);
  message.add_bool(Parameters::log_to_response, limits.keep_log);
  message.add_bool(Parameters::catch_sigint, false);  // Ctrl-C belongs to the program
  return bytes;
}

// The C entry points (ortools/sat/c_api/cp_solver_c.h), resolved once.
struct Library {
  void* (*new_environment)() = nullptr;
  void (*destroy_environment)(void*) = nullptr;
  void (*stop_search)(void*) = nullptr;
  void (*solve)(void* environment, const void* model, int model_size, const void* parameters,
                int parameters_size, void** response, int* response_size) = nullptr;
  std::string error;
};

// DEEPBIND keeps the library's own copies of common symbols apart from those of other large
// libraries in the process (libtorch brings another protobuf). The sanitizers cannot work with it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLoadMode = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kLoadMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

template <typename Function>
void resolve(void* handle, const char* name, Function& function, std::string& error) {
  void* const symbol = dlsym(handle, name);
  if (symbol == nullptr && error.empty()) error = std::string("CP-SAT's library has no ") + name;
  function = reinterpret_cast<Function>(symbol);
}

Library load_library() {
  Library library;
  const char* const chosen = std::getenv("PLACEWRIGHT_ORTOOLS_LIB");
  const std::string path = chosen != nullptr ? chosen : PLACEWRIGHT_ORTOOLS_LIB;
  if (path.empty()) {
    library.error =
        "CP-SAT is not available: no libortools was found when placewright was built; "
        "set PLACEWRIGHT_ORTOOLS_LIB to one";
    return library;
  }
  const auto [handle, error] = open_shared_object(path, kLoadMode);
  if (handle == nullptr) {
    library.error = "CP-SAT is not available: " + error;
    return library;
  }
  resolve(handle, "SolveCpNewEnv", library.new_environment, library.error);
  resolve(handle, "SolveCpDestroyEnv", library.destroy_environment, library.error);
  resolve(handle, "SolveCpStopSearch", library.stop_search, library.error);
  resolve(handle, "SolveCpInterruptible", library.solve, library.error);
  return library;
}

// Never unloaded: its threads and static objects may outlive any moment that we could choose.
const Library& library() {
  static const Library loaded = load_library();
  return loaded;
}

// Calls `stop_search` once the flag is set, and goes on calling it until destroyed: a call that
// comes before the search has begun might be forgotten.
class StopWatcher {
 public:
  StopWatcher(const std::atomic<bool>* flag, const Library& solver, void* environment) {
    if (flag == nullptr) return;
    thread_ = std::jthread([flag, &solver, environment](const std::stop_token& done) {
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      while (!done.stop_requested()) {
        if (flag->load(std::memory_order_relaxed)) solver.stop_search(environment);
        wake.wait_for(lock, done, std::chrono::milliseconds(10), [] { return false; });
      }
    });
  }

 private:
  std::jthread thread_;
};

CpStatus to_status(int status) {
  switch (static_cast<ResponseStatus>(status)) {
    case ResponseStatus::optimal:
      return CpStatus::optimal;
    case ResponseStatus::feasible:
      return CpStatus::feasible;
    case ResponseStatus::infeasible:
      return CpStatus::infeasible;
    case ResponseStatus::unknown:
      return CpStatus::unknown;
    case ResponseStatus::model_invalid:
      return CpStatus::error;
  }
  return CpStatus::error;
}

CpResult decode(const void* bytes, int size) {
  CpResult result;
  result.status = CpStatus::unknown;  // the default value is not on the wire
  double objective = 0;
  double bound = 0;
  std::string information;
  protozero::pbf_message<Response> response(static_cast<const char*>(bytes),
                                            static_cast<std::size_t>(size));
  while (response.next()) {
    switch (response.tag()) {
      case Response::status:
        result.status = to_status(response.get_enum());
        break;
      case Response::solution:
        for (const std::int64_t value : response.get_packed_int64()) result.values.push_back(value);
        break;
      case Response::objective:
        objective = response.get_double();
        break;
      case Response::best_bound:
        bound = response.get_double();
        break;
      case Response::deterministic_time:
        result.deterministic_time = response.get_double();
        break;
      case Response::solution_info:
        information = response.get_string();
        break;
      case Response::log:
        result.log = response.get_string();
        break;
      default:
        response.skip();
    }
  }
  if (result.status == CpStatus::error) {
    result.error = "CP-SAT rejects the model: " + information;
    result.values.clear();
  }
  if (result.has_solution()) {
    result.objective = objective;
    result.best_bound = bound;
  } else if (result.status == CpStatus::unknown) {
    result.best_bound = bound;
  }
  return result;
}

CpResult failure(std::string text) {
  CpResult result;
  result.error = std::move(text);
  return result;
}

}  // namespace

bool cp_sat_available() {
  return library().error.empty();
}

const std::string& cp_sat_load_error() {
  return library().error;
}

CpResult cp_sat_solve(const CpModel& model, const CpLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const Library& solver = library();
  if (!solver.error.empty()) return failure(solver.error);
  const std::string model_bytes = CpEncoding::encode(model);
  const std::string parameter_bytes = encode(limits);
  if (model_bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return failure("the CP-SAT model is larger than 2 GiB");
  }
  if (limits.stop != nullptr && limits.stop->load()) {
    CpResult stopped;
    stopped.status = CpStatus::unknown;
    return stopped;
  }

  void* bytes = nullptr;
  int size = 0;
  {
    const std::unique_ptr<void, void (*)(void*)> environment(solver.new_environment(),
                                                             solver.destroy_environment);
    const StopWatcher watcher(limits.stop, solver, environment.get());
    solver.solve(environment.get(), model_bytes.data(), static_cast<int>(model_bytes.size()),
                 parameter_bytes.data(), static_cast<int>(parameter_bytes.size()), &bytes, &size);
  }
  const std::unique_ptr<void, void (*)(void*)> owner(bytes, std::free);
  if (bytes == nullptr) return failure("CP-SAT gave no answer");
  CpResult result;
  try {
    result = decode(bytes, size);
  } catch (const protozero::exception& fault) {
    return failure(std::string("CP-SAT's answer cannot be read: ") + fault.what());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace placewright::solvers
