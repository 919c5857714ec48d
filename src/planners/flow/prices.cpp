// Prices on device time: a bound on total completion that rises, and a plan beside it.
//
// Starts from the plan given, or from `talos`. Then prices by subgradient steps
// (bounds/priced_time.h), each of which proves a bound, while steps still help and for half of the
// time at most. Devices that every model wants at the same time are what the other bounds do not
// see: there each model by itself has all of them, or the models are work that any number of
// devices could share.
//
// When ops would start at these prices, each model by itself, is also a good list of ops (what
// project scheduling calls alpha-points: R. Moehring et al., Management Science 49, 2003): each
// step makes a few plans so. Local search over the lists has most of the time that is left
// (list_search.h), local search over the schedule the rest.
//
// The horizon is a little after the end of the plan at hand, in 500 bins, then 2,000 and 8,000,
// fewer on large problems. A step is a step of prices, or a list.

#include <algorithm>
#include <optional>
#include <utility>

#include "bounds/priced_time.h"
#include "planners/flow/flow.h"
#include "planners/flow/list_search.h"
#include "planners/methods/sequence_search.h"

namespace placewright {
namespace {

constexpr std::size_t kMostBins = 2000;
constexpr std::size_t kLeastBins = 50;
constexpr double kStepSize = 3e7;   // about a hundredth of a second
constexpr std::size_t kFiner = 4;   // times as many bins
constexpr double kMostCells = 2e7;  // ops x devices x bins, of some 12 bytes
constexpr int kMostSteps = 1000;
constexpr int kPatience = 60;  // steps that bring less than kGain together
constexpr double kGain = 1e-4;
constexpr double kStartShare = 0.25;
constexpr double kPriceShare = 0.5;
constexpr double kListShare = 0.75;  // of what is left after prices
constexpr double kHorizon = 1.15;    // in ends of the plan at hand: a better one may end later

double bins_for(const Problem& problem) {
  const auto devices = static_cast<double>(problem.device_count());
  return kStepSize / (static_cast<double>(problem.op_count()) * devices * devices);
}

void keep_better(Answer& answer, const std::optional<Plan>& plan, Control& control) {
  if (!plan || plan->value >= answer.value()) return;
  answer.plan = plan;
  control.report(*answer.plan, answer.certificate.lower_bound);
}

// Steps of prices, while they help and more time is left than `until`; each makes lists too.
void take_steps(PricedTime& prices, double until, Answer& answer, ListSearch& lists,
                Control& control) {
  double at_last_gain = 0;
  int last_gain = 0;
  for (int step = 0; step < kMostSteps && step - last_gain < kPatience; ++step) {
    if (control.should_stop(1) || control.remaining() < until) return;
    const double bound = prices.step();
    for (const double part : {0.0, 0.5, 1.0}) lists.offer(prices.moments(part));
    if (bound > answer.certificate.lower_bound) {
      answer.certificate = {bound, "prices on device time"};
      control.report(answer.value(), bound);
      if (answer.status() == Status::optimal) return;
    }
    if (bound < at_last_gain * (1 + kGain)) continue;
    at_last_gain = bound;
    last_gain = step;
  }
}

// Few bins at first: there prices find their place soon, and the same prices prove more in smaller
// bins, which take less off the times of ops.
void raise_bound(const Problem& problem, Answer& answer, ListSearch& lists, Control& control) {
  const auto& ends = answer.plan->schedule->end;
  const double horizon = ends.empty() ? 0 : kHorizon * *std::max_element(ends.begin(), ends.end());
  if (!(horizon > 0)) return;
  const auto middle = std::min(static_cast<std::size_t>(bins_for(problem)), kMostBins);
  const double cells = static_cast<double>(problem.op_count() * problem.device_count() * middle);
  const int levels = cells * kFiner <= kMostCells ? 3 : 2;
  const double end = control.remaining() * (1 - kPriceShare);
  std::size_t bins = (middle + kFiner - 1) / kFiner;
  std::optional<PricedTime> coarse;
  for (int level = 1; level <= levels; ++level, bins *= kFiner) {
    PricedTime prices(problem, answer.value(), horizon, bins);
    if (prices.step_seconds() > control.remaining() - end) return;
    if (coarse) prices.take_prices(*coarse, kFiner);
    const double until = level < levels ? (control.remaining() + end) / 2 : end;
    take_steps(prices, until, answer, lists, control);
    keep_better(answer, lists.best(), control);
    if (answer.status() == Status::optimal || control.should_stop()) return;
    coarse.emplace(std::move(prices));
  }
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  Answer answer;
  if (control.start != nullptr) {
    answer.plan = *control.start;
  } else {
    const PlannerEntry first = talos();
    Control part = control.part(first.name, kStartShare * control.remaining());
    answer = first.plan(problem, Settings{first.options}, part);
  }
  if (!answer.plan) return answer;
  control.report(*answer.plan, answer.certificate.lower_bound);
  ListSearch lists(problem, control);
  raise_bound(problem, answer, lists, control);
  const double until = control.remaining() * (1 - kListShare);
  if (answer.status() == Status::optimal || control.should_stop()) return answer;
  lists.anneal([&] { return control.should_stop(1) || control.remaining() < until; });
  keep_better(answer, lists.best(), control);
  if (answer.status() == Status::optimal || control.should_stop()) return answer;
  Control rest = control.part("search", control.remaining());
  rest.start = &*answer.plan;
  rest.exchange = control.exchange;
  keep_better(answer, search_sequences(problem, rest).plan, control);
  return answer;
}

std::string refuses(const Problem& problem) {
  if (bins_for(problem) < kLeastBins) return "it has too many ops and devices to price their time";
  return {};
}

}  // namespace

PlannerEntry prices() {
  return PlannerEntry{.name = "prices",
                      .summary = "a rising bound by prices on device time, and local search",
                      .objectives = {Objective::total_completion},
                      .effort = Effort::anytime,
                      .share = 24,
                      .knows = kCommonAndSharing,
                      .refuses = refuses,
                      .plan = plan};
}

}  // namespace placewright
