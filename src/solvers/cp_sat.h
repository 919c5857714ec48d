// Constraint programs over bounded integers, solved by CP-SAT (OR-Tools).
//
// A CpModel collects variables, scheduling intervals, constraints and a linear objective to
// minimise; cp_sat_solve runs it. All numbers are 64-bit integers: scale real times first, and keep
// every sum below 2^62 in absolute value.
//
// Cost: the model is kept in the solver's wire format, a few bytes per term. The search is
// exponential in the worst case. Limits: 2 GiB of model. Incumbents are not reported while the
// search runs (the C entry points have no callback). With one worker and `deterministic_time` in
// place of `time_seconds` the answer is reproducible. The library is loaded when first needed, from
// the path given at build time or in the environment variable PLACEWRIGHT_ORTOOLS_LIB. Where it is
// missing, solving answers error and cp_sat_load_error() says why. Reference: Perron, Didier and
// Gay, "The CP-SAT-LP solver", CP 2023.

#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace placewright::solvers {

struct CpVariable {
  int index = 0;
};

// A 0/1 variable or its negation.
class CpLiteral {
 public:
  CpLiteral(CpVariable variable) : code_(variable.index) {}  // NOLINT(google-explicit-constructor)
  CpLiteral operator!() const { return CpLiteral(-code_ - 1); }
  int code() const { return code_; }  // index, or -index - 1 when negated

 private:
  explicit CpLiteral(int code) : code_(code) {}
  int code_;
};

struct CpTerm {
  CpVariable variable;
  std::int64_t coefficient = 1;
};

// Sum of terms plus an offset. Converts implicitly from a variable or a constant.
struct CpExpression {
  std::vector<CpTerm> terms;
  std::int64_t offset = 0;

  CpExpression() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  CpExpression(std::int64_t constant) : offset(constant) {}
  CpExpression(CpVariable variable) : terms{{variable, 1}} {}
  // NOLINTEND(google-explicit-constructor)
  CpExpression(std::vector<CpTerm> sum, std::int64_t constant)
      : terms(std::move(sum)), offset(constant) {}
};

// All integers from lower to upper.
struct CpRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
};

// Open ends of ranges.
inline constexpr std::int64_t kCpMinimum = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kCpMaximum = std::numeric_limits<std::int64_t>::max();

struct CpInterval {
  int index = 0;
};

class CpModel {
 public:
  CpVariable add_bool();
  CpVariable add_integer(std::int64_t lower, std::int64_t upper);
  // Ranges ascending and apart.
  CpVariable add_integer(std::span<const CpRange> domain);

  // An interval of fixed size; with `present` it exists only where that literal is true.
  CpInterval add_interval(const CpExpression& start, std::int64_t size,
                          std::optional<CpLiteral> present = std::nullopt);
  // start + size = end is enforced (where present). Each of the three has at most one variable.
  CpInterval add_interval(const CpExpression& start, const CpExpression& size,
                          const CpExpression& end, std::optional<CpLiteral> present = std::nullopt);
  void add_no_overlap(std::span<const CpInterval> intervals);
  // At every moment the demands of the running intervals sum to at most the capacity.
  void add_cumulative(const CpExpression& capacity, std::span<const CpInterval> intervals,
                      std::span<const CpExpression> demands);

  // The sum lies in the range or domain; with `if_all`, only where all of those literals are true.
  void add_linear(const CpExpression& sum, CpRange range, std::span<const CpLiteral> if_all = {});
  void add_linear(const CpExpression& sum, std::span<const CpRange> domain,
                  std::span<const CpLiteral> if_all = {});
  void add_bool_or(std::span<const CpLiteral> literals, std::span<const CpLiteral> if_all = {});
  void add_bool_and(std::span<const CpLiteral> literals, std::span<const CpLiteral> if_all);
  void add_at_most_one(std::span<const CpLiteral> literals);
  void add_exactly_one(std::span<const CpLiteral> literals);
  // target = max(expressions)
  void add_maximum(const CpExpression& target, std::span<const CpExpression> expressions);

  // A later call replaces the objective.
  void minimize(const CpExpression& objective);
  // A value to try first; a later hint for the same variable replaces it. Need not be feasible.
  void set_hint(CpVariable variable, std::int64_t value);

  int variables() const { return static_cast<int>(hints_.size()); }
  int constraints() const { return constraints_; }

 private:
  friend struct CpEncoding;

  std::string body_;  // variables and constraints, encoded
  int constraints_ = 0;
  std::optional<CpExpression> objective_;
  std::vector<std::optional<std::int64_t>> hints_;  // one per variable
};

enum class CpStatus {
  optimal,     // proved, within the gap asked for; also a solution of a model without objective
  feasible,    // a limit or the stop flag ended the search; `values` is the best found
  infeasible,  // proved
  unknown,     // a limit or the stop flag ended the search before any solution was found
  error,       // see `error`
};

struct CpLimits {
  double time_seconds = std::numeric_limits<double>::infinity();
  double deterministic_time =
      std::numeric_limits<double>::infinity();  // about seconds, but reproducible
  int workers = 1;
  int seed = 0;
  double relative_gap = 0;
  bool presolve = true;
  int probing_level =
      2;  // 0: no probing in presolve, which is slow where many intervals are optional
  int linearization_level = 1;  // 0: no linear relaxation
  bool take_turns =
      false;              // one worker goes through all strategies, local search included, in turn
  bool keep_log = false;  // fill CpResult::log
  const std::atomic<bool>* stop = nullptr;  // set it from anywhere to end the search soon
};

struct CpResult {
  CpStatus status = CpStatus::error;
  std::string error;
  std::vector<std::int64_t> values;  // one per variable; empty without a solution
  double objective = std::numeric_limits<double>::infinity();
  double best_bound = -std::numeric_limits<double>::infinity();
  double seconds = 0;
  double deterministic_time = 0;  // that was used
  std::string log;

  bool has_solution() const { return !values.empty(); }
  std::int64_t value(CpVariable variable) const {
    return values[static_cast<std::size_t>(variable.index)];
  }
  bool value(CpLiteral literal) const {
    const int code = literal.code();
    return code >= 0 ? values[static_cast<std::size_t>(code)] != 0
                     : values[static_cast<std::size_t>(-code - 1)] == 0;
  }
};

CpResult cp_sat_solve(const CpModel& model, const CpLimits& limits = {});

// Whether the library can be loaded, and if not, why (else empty).
bool cp_sat_available();
const std::string& cp_sat_load_error();

}  // namespace placewright::solvers
