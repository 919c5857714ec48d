// search: anytime local search over placement, order and transfer order
// (methods/sequence_search.h).

#include "planners/latency/latency.h"
#include "planners/methods/sequence_search.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  return search_sequences(problem, control,
                          {.trials = static_cast<std::size_t>(settings.integer("trials")),
                           .temperature = settings.number("temperature")});
}

}  // namespace

PlannerEntry search() {
  return PlannerEntry{
      .name = "search",
      .summary = "local search over placement, order and transfer order, in windows",
      .objectives = {Objective::latency, Objective::total_completion},
      .effort = Effort::anytime,
      .share = 8,
      .knows = kCommonAndSharing,
      .uses_threads = true,
      .options = {{"trials", "moves tried in each window of a sweep", std::int64_t{256}, 16, 1e6},
                  {"temperature", "at the start of a cycle, in mean op times", 1.0, 0, 100}},
      .plan = plan};
}

}  // namespace placewright
