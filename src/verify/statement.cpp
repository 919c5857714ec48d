#include "verify/statement.h"

#include <cmath>

namespace placewright::verifying {
namespace {

// docs/semantics.md, "What a plan says of itself".
constexpr double kGapTolerance = 1e-9;
constexpr double kLargestOptimalGap = 1e-6;

bool status_fits(const Statement& statement, double gap) {
  if (statement.status == Status::optimal) return gap <= kLargestOptimalGap;
  return statement.status == Status::feasible &&
         (gap > kLargestOptimalGap || !statement.lower_bound);
}

}  // namespace

void check_statement(const Statement& statement, double value, Findings& findings) {
  const double bound = statement.lower_bound.value_or(0);
  if (std::isnan(bound) || (bound > value && !same_value(bound, value))) {
    findings.add(ViolationCode::bound_above_value, {}, {},
                 "the plan states the lower bound {:.9g}, above its value {:.9g}", bound, value);
    return;
  }
  const double gap = value == bound ? 0 : (value - bound) / value;
  if (statement.gap && !(std::abs(*statement.gap - gap) <= kGapTolerance)) {
    findings.add(ViolationCode::gap_wrong, {}, {}, "the plan states the gap {:.9g}, it is {:.9g}",
                 *statement.gap, gap);
  }
  if (!status_fits(statement, gap)) {
    findings.add(ViolationCode::status_wrong, {}, {},
                 "the plan states that it is {}, and its gap is {:.9g}", name_of(statement.status),
                 gap);
  }
}

}  // namespace placewright::verifying
