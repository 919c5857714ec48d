#include "solvers/linear_program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>

#include <interfaces/highs_c_api.h>

namespace placewright::solvers {
namespace {

struct HighsDeleter {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using HighsHandle = std::unique_ptr<void, HighsDeleter>;

// Rows or columns waiting to be handed over, in HiGHS's compressed form.
struct Batch {
  std::vector<double> cost, lower, upper, value;
  std::vector<HighsInt> start, index;

  HighsInt size() const { return static_cast<HighsInt>(lower.size()); }
  HighsInt entries() const { return static_cast<HighsInt>(index.size()); }
  void clear() { *this = Batch{}; }
};

// What the C callback sees while a solve runs.
struct Watch {
  const std::atomic<bool>* stop = nullptr;
  const LinearProgressCallback* progress = nullptr;
  std::exception_ptr failure;  // what the progress callback threw

  [[nodiscard]] bool wants_stop() const {
    return failure != nullptr || (stop != nullptr && stop->load(std::memory_order_relaxed));
  }
};

void report_progress(Watch& watch, int type, const HighsCallbackDataOut& out) {
  LinearProgress state{out.running_time, out.mip_primal_bound, out.mip_dual_bound, {}};
  if (type == kHighsCallbackMipImprovingSolution && out.mip_solution != nullptr) {
    state.incumbent = out.objective_function_value;
    state.values = {out.mip_solution, static_cast<std::size_t>(out.mip_solution_size)};
  }
  try {
    (*watch.progress)(state);
  } catch (...) {
    watch.failure = std::current_exception();
  }
}

// HiGHS is not written for exceptions that pass through it: nothing may leave here.
void on_callback(int type, const char* /*message*/, const HighsCallbackDataOut* out,
                 HighsCallbackDataIn* in, void* data) {
  auto& watch = *static_cast<Watch*>(data);
  const bool reports_state =
      type == kHighsCallbackMipImprovingSolution || type == kHighsCallbackMipLogging;
  if (reports_state && *watch.progress && watch.failure == nullptr) {
    report_progress(watch, type, *out);
  }
  if (in != nullptr && watch.wants_stop()) in->user_interrupt = 1;
}

// HiGHS ends the program when it cannot make the threads of its pool, and gains nothing from more
// of them than the machine runs at once.
int pool_threads(const LinearLimits& limits) {
  const auto machine = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::clamp(limits.threads, 1, machine);
}

// Presolve by enumeration, which HiGHS 1.15.1 numbers so, makes a program whose solutions break
// rows of the original one: values below the optimum, and with a start false proofs (HConst.h,
// kPresolveRuleEnumeration).
constexpr HighsInt kPresolveWithoutEnumeration = 1 << 16;

// HiGHS keeps one pool of workers per calling thread and refuses to run with another size than the
// pool's.
void match_worker_pool(int threads) {
  thread_local int pool_size = 0;
  if (pool_size != 0 && pool_size != threads) Highs_resetGlobalScheduler(1);
  pool_size = threads;
}

HighsInt to_index_limit(std::int64_t limit) {
  return static_cast<HighsInt>(
      std::clamp<std::int64_t>(limit, 0, std::numeric_limits<HighsInt>::max()));
}

}  // namespace

struct LinearProgram::State {
  HighsHandle highs{Highs_create()};
  std::vector<double> cost, lower, upper, row_lower, row_upper;
  std::vector<HighsInt> integrality;
  std::vector<double> start;
  Batch new_columns, new_rows;
  int integer_variables = 0;
  std::string fault;  // the first wrong call

  int columns_handed_over() const { return static_cast<int>(cost.size()) - new_columns.size(); }
  int rows_handed_over() const { return static_cast<int>(row_lower.size()) - new_rows.size(); }

  void note_fault(std::string text) {
    if (fault.empty()) fault = std::move(text);
  }
  void note_status(HighsInt status, const char* call) {
    if (status == kHighsStatusError) note_fault(std::string("HiGHS refused ") + call);
  }
  bool is_variable(int variable) {
    const bool known = variable >= 0 && variable < static_cast<int>(cost.size());
    if (!known) note_fault("no variable " + std::to_string(variable));
    return known;
  }
  bool is_row(int row) {
    const bool known = row >= 0 && row < static_cast<int>(row_lower.size());
    if (!known) note_fault("no row " + std::to_string(row));
    return known;
  }
  bool are_numbers(std::initializer_list<double> numbers) {
    const bool good = std::none_of(numbers.begin(), numbers.end(),
                                   [](double number) { return std::isnan(number); });
    if (!good) note_fault("a bound, cost or coefficient is not a number");
    return good;
  }

  void hand_over_columns();
  void hand_over_rows();
  // New rows may speak of new columns, never the other way round (see add_column).
  void hand_over() {
    hand_over_columns();
    hand_over_rows();
  }

  bool has_crossed_bounds() const;
  bool zero_fits_rows() const;
  bool cost_is_bounded_below() const;
  void apply(const LinearLimits& limits);
  void apply_start();
  LinearStatus status_after_run(bool has_solution) const;
  void read_solution(LinearResult& result) const;
};

void LinearProgram::State::hand_over_columns() {
  Batch& batch = new_columns;
  if (batch.size() == 0) return;
  const HighsInt first = columns_handed_over();
  note_status(Highs_addCols(highs.get(), batch.size(), batch.cost.data(), batch.lower.data(),
                            batch.upper.data(), batch.entries(), batch.start.data(),
                            batch.index.data(), batch.value.data()),
              "the new variables");
  // Naming a type for every column makes HiGHS treat the model as a MIP, which has no duals: only
  // when needed.
  if (integer_variables > 0 && fault.empty()) {
    note_status(Highs_changeColsIntegralityByRange(highs.get(), first, first + batch.size() - 1,
                                                   integrality.data() + first),
                "the integrality of variables");
  }
  batch.clear();
}

void LinearProgram::State::hand_over_rows() {
  Batch& batch = new_rows;
  if (batch.size() == 0) return;
  note_status(
      Highs_addRows(highs.get(), batch.size(), batch.lower.data(), batch.upper.data(),
                    batch.entries(), batch.start.data(), batch.index.data(), batch.value.data()),
      "the new rows");
  batch.clear();
}

bool LinearProgram::State::has_crossed_bounds() const {
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (lower[i] > upper[i]) return true;
  }
  for (std::size_t i = 0; i < row_lower.size(); ++i) {
    if (row_lower[i] > row_upper[i]) return true;
  }
  return false;
}

bool LinearProgram::State::zero_fits_rows() const {
  for (std::size_t i = 0; i < row_lower.size(); ++i) {
    if (row_lower[i] > 0 || row_upper[i] < 0) return false;
  }
  return true;
}

// True when the variables' bounds alone keep the objective from falling for ever.
bool LinearProgram::State::cost_is_bounded_below() const {
  for (std::size_t i = 0; i < cost.size(); ++i) {
    if (cost[i] > 0 && std::isinf(lower[i])) return false;
    if (cost[i] < 0 && std::isinf(upper[i])) return false;
  }
  return true;
}

void LinearProgram::State::apply(const LinearLimits& limits) {
  void* const solver = highs.get();
  const int threads = pool_threads(limits);
  match_worker_pool(threads);
  Highs_setBoolOptionValue(solver, "output_flag", 0);
  Highs_setIntOptionValue(solver, "threads", threads);
  Highs_setStringOptionValue(solver, "parallel", threads > 1 ? "on" : "off");
  Highs_setIntOptionValue(solver, "random_seed", std::max(0, limits.seed));
  Highs_setDoubleOptionValue(solver, "time_limit", std::max(0.0, limits.time_seconds));
  Highs_setIntOptionValue(solver, "mip_max_nodes", to_index_limit(limits.node_limit));
  Highs_setIntOptionValue(solver, "presolve_rule_off", kPresolveWithoutEnumeration);
  Highs_setDoubleOptionValue(solver, "mip_rel_gap", std::max(0.0, limits.mip_gap));
  Highs_setDoubleOptionValue(solver, "mip_feasibility_tolerance", limits.integrality);
  // Else HiGHS keeps counting from its first run, and the time limit would be one for all runs
  // together.
  Highs_zeroAllClocks(solver);
}

void LinearProgram::State::apply_start() {
  if (start.empty()) return;
  const std::vector<double> point = std::exchange(start, {});
  if (integer_variables == 0) return;
  std::vector<HighsInt> index;
  std::vector<double> value;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (std::isnan(point[i])) continue;
    index.push_back(static_cast<HighsInt>(i));
    value.push_back(point[i]);
  }
  // A start that HiGHS dislikes is no fault: the search simply begins without it.
  if (index.size() == cost.size()) {
    Highs_setSolution(highs.get(), value.data(), nullptr, nullptr, nullptr);
  } else if (!index.empty()) {
    Highs_setSparseSolution(highs.get(), static_cast<HighsInt>(index.size()), index.data(),
                            value.data());
  }
}

LinearStatus LinearProgram::State::status_after_run(bool has_solution) const {
  switch (Highs_getModelStatus(highs.get())) {
    case kHighsModelStatusOptimal:
      return LinearStatus::optimal;
    case kHighsModelStatusModelEmpty:  // HiGHS does not look at the rows of a model without
                                       // variables
      return zero_fits_rows() ? LinearStatus::optimal : LinearStatus::infeasible;
    case kHighsModelStatusInfeasible:
      return LinearStatus::infeasible;
    case kHighsModelStatusUnbounded:
      return LinearStatus::unbounded;
    case kHighsModelStatusUnboundedOrInfeasible:
      return cost_is_bounded_below() ? LinearStatus::infeasible
                                     : LinearStatus::unbounded_or_infeasible;
    case kHighsModelStatusObjectiveBound:
    case kHighsModelStatusObjectiveTarget:
    case kHighsModelStatusTimeLimit:
    case kHighsModelStatusIterationLimit:
    case kHighsModelStatusSolutionLimit:
    case kHighsModelStatusInterrupt:
      return has_solution ? LinearStatus::feasible : LinearStatus::limit;
    default:
      return LinearStatus::error;
  }
}

void LinearProgram::State::read_solution(LinearResult& result) const {
  void* const solver = highs.get();
  const bool is_mip = integer_variables > 0;
  HighsInt primal_status = kHighsSolutionStatusNone;
  Highs_getIntInfoValue(solver, "primal_solution_status", &primal_status);
  const HighsInt model_status = Highs_getModelStatus(solver);
  const bool feasible =
      primal_status == kHighsSolutionStatusFeasible || model_status == kHighsModelStatusOptimal;
  result.status = status_after_run(feasible);
  if (result.status == LinearStatus::error) {
    result.error = "HiGHS ended with model status " + std::to_string(model_status);
    return;
  }
  if (is_mip) {
    Highs_getDoubleInfoValue(solver, "mip_dual_bound", &result.dual_bound);
  }
  const bool optimal = result.status == LinearStatus::optimal;
  if (!optimal && result.status != LinearStatus::feasible) return;

  result.values.resize(cost.size());
  std::vector<double> row_values(row_lower.size());
  std::vector<double> reduced_costs(cost.size());
  std::vector<double> row_duals(row_lower.size());
  Highs_getSolution(solver, result.values.data(), reduced_costs.data(), row_values.data(),
                    row_duals.data());
  result.objective = Highs_getObjectiveValue(solver);
  if (!is_mip && optimal) {
    result.dual_bound = result.objective;
    result.row_duals = std::move(row_duals);
    result.reduced_costs = std::move(reduced_costs);
  }
}

LinearProgram::LinearProgram() : state_(std::make_unique<State>()) {
  Highs_setBoolOptionValue(state_->highs.get(), "output_flag", 0);
}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

int LinearProgram::variables() const {
  return static_cast<int>(state_->cost.size());
}
int LinearProgram::rows() const {
  return static_cast<int>(state_->row_lower.size());
}

int LinearProgram::add_variable(double lower, double upper, double cost, Integrality integrality) {
  return add_column(lower, upper, cost, {}, integrality);
}

int LinearProgram::add_column(double lower, double upper, double cost,
                              std::span<const ColumnEntry> entries, Integrality integrality) {
  State& state = *state_;
  state.are_numbers({lower, upper, cost});
  const bool speaks_of_new_row =
      std::any_of(entries.begin(), entries.end(),
                  [&](const ColumnEntry& entry) { return entry.row >= state.rows_handed_over(); });
  if (speaks_of_new_row) state.hand_over();

  Batch& batch = state.new_columns;
  batch.start.push_back(batch.entries());
  for (const ColumnEntry& entry : entries) {
    if (!state.is_row(entry.row) || !state.are_numbers({entry.coefficient})) continue;
    batch.index.push_back(entry.row);
    batch.value.push_back(entry.coefficient);
  }
  batch.cost.push_back(cost);
  batch.lower.push_back(lower);
  batch.upper.push_back(upper);
  state.cost.push_back(cost);
  state.lower.push_back(lower);
  state.upper.push_back(upper);
  const bool integer = integrality == Integrality::integer;
  state.integrality.push_back(integer ? kHighsVarTypeInteger : kHighsVarTypeContinuous);
  state.integer_variables += integer ? 1 : 0;
  return variables() - 1;
}

int LinearProgram::add_row(double lower, double upper, std::span<const LinearTerm> terms) {
  State& state = *state_;
  state.are_numbers({lower, upper});
  std::vector<LinearTerm> sorted(terms.begin(), terms.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const LinearTerm& a, const LinearTerm& b) {
    return a.variable < b.variable;
  });

  Batch& batch = state.new_rows;
  const HighsInt row_start = batch.entries();
  batch.start.push_back(row_start);
  for (const LinearTerm& term : sorted) {
    if (!state.is_variable(term.variable) || !state.are_numbers({term.coefficient})) continue;
    if (batch.entries() > row_start && batch.index.back() == term.variable) {
      batch.value.back() += term.coefficient;
    } else {
      batch.index.push_back(term.variable);
      batch.value.push_back(term.coefficient);
    }
  }
  batch.lower.push_back(lower);
  batch.upper.push_back(upper);
  state.row_lower.push_back(lower);
  state.row_upper.push_back(upper);
  return rows() - 1;
}

void LinearProgram::set_cost(int variable, double cost) {
  State& state = *state_;
  if (!state.is_variable(variable) || !state.are_numbers({cost})) return;
  state.hand_over();
  state.cost[static_cast<std::size_t>(variable)] = cost;
  state.note_status(Highs_changeColCost(state.highs.get(), variable, cost), "a cost");
}

void LinearProgram::set_bounds(int variable, double lower, double upper) {
  State& state = *state_;
  if (!state.is_variable(variable) || !state.are_numbers({lower, upper})) return;
  state.hand_over();
  state.lower[static_cast<std::size_t>(variable)] = lower;
  state.upper[static_cast<std::size_t>(variable)] = upper;
  state.note_status(Highs_changeColBounds(state.highs.get(), variable, lower, upper),
                    "the bounds of a variable");
}

void LinearProgram::set_row_bounds(int row, double lower, double upper) {
  State& state = *state_;
  if (!state.is_row(row) || !state.are_numbers({lower, upper})) return;
  state.hand_over();
  state.row_lower[static_cast<std::size_t>(row)] = lower;
  state.row_upper[static_cast<std::size_t>(row)] = upper;
  state.note_status(Highs_changeRowBounds(state.highs.get(), row, lower, upper),
                    "the bounds of a row");
}

void LinearProgram::set_coefficient(int row, int variable, double coefficient) {
  State& state = *state_;
  if (!state.is_row(row) || !state.is_variable(variable) || !state.are_numbers({coefficient})) {
    return;
  }
  state.hand_over();
  state.note_status(Highs_changeCoeff(state.highs.get(), row, variable, coefficient),
                    "a coefficient");
}

void LinearProgram::set_start(std::span<const double> values) {
  if (static_cast<int>(values.size()) != variables()) {
    state_->note_fault("the start point has " + std::to_string(values.size()) + " values for " +
                       std::to_string(variables()) + " variables");
    return;
  }
  state_->start.assign(values.begin(), values.end());
}

LinearResult LinearProgram::solve(const LinearLimits& limits,
                                  const LinearProgressCallback& progress) {
  State& state = *state_;
  const auto begin = std::chrono::steady_clock::now();
  LinearResult result;
  state.hand_over();
  if (!state.fault.empty()) {
    result.error = state.fault;
    return result;
  }
  if (state.has_crossed_bounds()) {
    result.status = LinearStatus::infeasible;
    return result;
  }
  if (limits.stop != nullptr && limits.stop->load()) {
    result.status = LinearStatus::limit;
    return result;
  }
  state.apply(limits);
  state.apply_start();

  Watch watch{limits.stop, &progress, nullptr};
  void* const solver = state.highs.get();
  Highs_setCallback(solver, on_callback, &watch);
  const std::initializer_list<HighsInt> watched = {
      kHighsCallbackSimplexInterrupt, kHighsCallbackIpmInterrupt, kHighsCallbackMipInterrupt,
      kHighsCallbackMipImprovingSolution, kHighsCallbackMipLogging};
  for (const HighsInt type : watched) Highs_startCallback(solver, type);
  const HighsInt run_status = Highs_run(solver);
  for (const HighsInt type : watched) Highs_stopCallback(solver, type);
  Highs_setCallback(solver, nullptr, nullptr);
  if (watch.failure) std::rethrow_exception(watch.failure);

  if (run_status == kHighsStatusError) {
    result.error = "HiGHS failed to run";
  } else {
    state.read_solution(result);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace placewright::solvers
