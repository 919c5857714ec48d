// Linear and mixed-integer programs, solved by HiGHS.
//
//   minimise c'x   subject to   L <= Ax <= U,   l <= x <= u,   x_j integer for the chosen j.
//
// A LinearProgram is alive: variables, columns and rows can be added and bounds and costs changed
// between solves. An LP then continues from its last basis (dual simplex), which is what column and
// cut generation need; a MIP starts from nothing but the start point.
//
// Cost: building is linear in the entries (additions are buffered and handed over at the next
// solve). Simplex for LPs, branch and cut for MIPs. Adding a column with entries in rows that were
// added since the last solve hands those over at once, so many such additions in turn cost one
// matrix update each. Limits: 2^31 entries. Duals exist for LPs only. With one thread and
// `node_limit` instead of `time_seconds` the answer is reproducible. One LinearProgram belongs to
// one thread at a time; several may run in different threads. Reference: Huangfu and Hall,
// "Parallelizing the dual revised simplex method", Math. Prog. Comp. 10 (2018).

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace placewright::solvers {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

enum class Integrality { continuous, integer };

// One entry of a row: coefficient times variable.
struct LinearTerm {
  int variable = 0;
  double coefficient = 0;
};

// One entry of a column: the coefficient of the new variable in a row.
struct ColumnEntry {
  int row = 0;
  double coefficient = 0;
};

enum class LinearStatus {
  optimal,                  // proved, within the gap asked for
  feasible,                 // a limit or the stop flag ended the search; `values` is the best found
  infeasible,               // proved
  unbounded,                // proved
  unbounded_or_infeasible,  // HiGHS could not tell which
  limit,  // a limit or the stop flag ended the search before any solution was found
  error,  // see `error`
};

struct LinearLimits {
  double time_seconds = kUnbounded;
  std::int64_t node_limit = std::numeric_limits<std::int64_t>::max();  // branch-and-bound nodes
  int threads = 1;  // at most; no more than the machine runs at once are used
  int seed = 0;
  double mip_gap = 1e-9;                    // relative
  double integrality = 1e-6;                // how far from whole an integer variable may be
  const std::atomic<bool>* stop = nullptr;  // set it from anywhere to end the search soon
};

// The state of a running MIP. `values` is the incumbent when this report announces a new one, else
// empty.
struct LinearProgress {
  double seconds = 0;
  double incumbent = kUnbounded;
  double bound = -kUnbounded;
  std::span<const double> values;
};

// What it throws ends the search, and is thrown again by `solve`.
using LinearProgressCallback = std::function<void(const LinearProgress&)>;

struct LinearResult {
  LinearStatus status = LinearStatus::error;
  std::string error;
  std::vector<double> values;  // one per variable; empty without a solution
  double objective = kUnbounded;
  double dual_bound = -kUnbounded;  // no solution is below this
  // Of an LP at its optimum. A dual is the change of the objective per unit of the row's bound.
  std::vector<double> row_duals;
  std::vector<double> reduced_costs;
  double seconds = 0;

  bool has_solution() const { return !values.empty(); }
};

class LinearProgram {
 public:
  LinearProgram();
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  // Variables and rows are numbered 0, 1, ... in the order in which they are added.
  int add_variable(double lower, double upper, double cost,
                   Integrality integrality = Integrality::continuous);
  // A variable that appears in rows that exist already.
  int add_column(double lower, double upper, double cost, std::span<const ColumnEntry> entries,
                 Integrality integrality = Integrality::continuous);
  // Terms of the same variable are summed.
  int add_row(double lower, double upper, std::span<const LinearTerm> terms);

  void set_cost(int variable, double cost);
  void set_bounds(int variable, double lower, double upper);
  void set_row_bounds(int row, double lower, double upper);
  void set_coefficient(int row, int variable, double coefficient);

  // A point to start the next MIP solve from, one value per variable; NaN leaves a value to HiGHS.
  // It need not be feasible; a feasible one is never lost. Ignored for LPs, which start from their
  // last basis.
  void set_start(std::span<const double> values);

  int variables() const;
  int rows() const;

  // A wrong index or a NaN in an earlier call is reported here, as error.
  LinearResult solve(const LinearLimits& limits = {}, const LinearProgressCallback& progress = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace placewright::solvers
