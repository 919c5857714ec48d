#include "support/answers.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "bounds/bounds.h"
#include "planning/service.h"
#include "support/planner_case.h"
#include "support/random_problem.h"
#include "support/small_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

// Bounds come from sums in another order than values do.
constexpr double kRounding = 1e-9;
constexpr double kProof = kOptimalGap + kRounding;

struct Given {
  std::string planner;
  Answer answer;
};

class Asking {
 public:
  Asking(const Problem& problem, std::uint64_t seed, const std::atomic<bool>* interrupted)
      : problem_(problem), random_(seed), interrupted_(interrupted) {}

  Asked run() {
    for (const PlannerEntry* entry : registry().fitting(problem_)) {
      // The draws are the same whoever is left out.
      const PlanRequest request = drawn(*entry);
      const bool through_service = random_.chance(0.3) || peak();
      if (!random_.chance(share_of(*entry))) continue;
      ask(*entry, request, through_service);
    }
    compare();
    return std::move(asked_);
  }

 private:
  // The planners of a peak rule are the service's: it asks them again until the plan fits.
  [[nodiscard]] bool peak() const { return problem_.rules().memory == MemoryModel::peak; }

  // Long ones take the time of a hundred others.
  static double share_of(const PlannerEntry& entry) {
    switch (entry.effort) {
      case Effort::instant:
      case Effort::quick:
        return 1;
      case Effort::anytime:
        return 0.5;
      case Effort::portfolio:
        return 0.1;
    }
    return 1;
  }

  PlanRequest drawn(const PlannerEntry& entry) {
    constexpr std::uint64_t kSteps[] = {1, 30, 300, 3000};
    PlanRequest request;
    request.planner = entry.name;
    request.budget = {.seconds = 2,
                      .steps = kSteps[random_.below(4)],
                      .threads = static_cast<int>(random_.between(1, 2)),
                      .seed = random_.between(1, 1000)};
    const bool improves = random_.chance(0.2) && !given_.empty();
    if (improves) {
      const Given& other = given_[random_.below(given_.size())];
      if (other.answer.plan) request.start = &*other.answer.plan;
    }
    return request;
  }

  Answer answer_of(const PlannerEntry& entry, const PlanRequest& request, bool through_service) {
    if (through_service) {
      PlanOutcome outcome = make_plan(problem_, registry(), request, interrupted_);
      if (!outcome.fault.empty()) blame(entry.name, outcome.fault);
      return std::move(outcome.answer);
    }
    Control control(entry.name, request.budget, interrupted_);
    control.start = request.start;
    return entry.plan(problem_, Settings{entry.options}, control);
  }

  void ask(const PlannerEntry& entry, const PlanRequest& request, bool through_service) {
    try {
      Answer answer = answer_of(entry, request, through_service);
      ++asked_.answers[entry.name];
      look_at(entry.name, answer);
      if (request.start != nullptr && through_service &&
          !(answer.value() <= request.start->value * (1 + kRounding))) {
        blame(entry.name, fmt::format("{} is worse than the start plan's {}", answer.value(),
                                      request.start->value));
      }
      given_.push_back({entry.name, std::move(answer)});
    } catch (const std::exception& error) {
      blame(entry.name, fmt::format("throws: {}", error.what()));
    }
  }

  void look_at(const std::string& planner, const Answer& answer) {
    if (!answer.plan) {
      if (answer.reason.empty()) blame(planner, "says neither plan nor reason");
      return;
    }
    if (answer.proved_infeasible) blame(planner, "has a plan and a proof that there is none");
    for (const Violation& violation : verify(problem_, *answer.plan)) {
      blame(planner, fmt::format("{}: {}", name_of(violation.code), violation.message));
    }
    if (answer.certificate.lower_bound > answer.value() * (1 + kRounding)) {
      blame(planner, fmt::format("states the bound {} above its own value {}",
                                 answer.certificate.lower_bound, answer.value()));
    }
  }

  // The least value that any plan is known to have.
  [[nodiscard]] std::optional<double> best() const {
    std::optional<double> least;
    for (const Given& given : given_) {
      if (given.answer.plan) least = std::min(least.value_or(kInfinity), given.answer.value());
    }
    return least;
  }

  void compare() {
    const Enumerated all = enumerated(problem_);
    std::optional<double> least = best();
    if (all.known) {
      if (least && !all.least) blame("enumeration", "finds no plan where planners have one");
      if (least && all.least && *all.least > *least * (1 + kRounding)) {
        blame("enumeration", fmt::format("finds {}, a planner {}", *all.least, *least));
      }
      least = all.least;
    }
    for (const Given& given : given_) compare(given, least, all.known);
    if (!least) return;
    for (const Bound& bound : lower_bounds(problem_)) {
      if (bound.value <= *least * (1 + kRounding)) continue;
      blame("bound", fmt::format("'{}' is {}, a plan has {}", bound.name, bound.value, *least));
    }
  }

  void compare(const Given& given, std::optional<double> least, bool all_known) {
    const Answer& answer = given.answer;
    if (!least) return;
    if (answer.proved_infeasible || answer.status() == Status::infeasible) {
      blame(given.planner, fmt::format("says that there is no plan, one has {}", *least));
    }
    const double bound = answer.certificate.lower_bound;
    if (answer.plan && bound > *least * (1 + kProof)) {
      blame(given.planner, fmt::format("states the bound {}, a plan has {}", bound, *least));
    }
    if (answer.status() == Status::optimal && answer.value() > *least * (1 + kProof)) {
      blame(given.planner, fmt::format("calls {} optimal, a plan has {}", answer.value(), *least));
    }
    if (all_known && answer.plan && answer.value() < *least * (1 - kRounding)) {
      blame(given.planner, fmt::format("has {}, the least of all is {}", answer.value(), *least));
    }
  }

  void blame(const std::string& planner, std::string what) {
    asked_.faults.push_back({planner, std::move(what)});
  }

  const Problem& problem_;
  RandomSource random_;
  const std::atomic<bool>* interrupted_;
  std::vector<Given> given_;
  Asked asked_;
};

}  // namespace

Asked ask_all(const Problem& problem, std::uint64_t seed, const std::atomic<bool>* interrupted) {
  return Asking(problem, seed, interrupted).run();
}

}  // namespace placewright::testing
