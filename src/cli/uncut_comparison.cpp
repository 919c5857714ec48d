#include "cli/uncut_comparison.h"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "formats/plan_rows.h"
#include "planning/uncut_plan.h"
#include "problem/cost_source.h"

namespace placewright::cli {
namespace {

constexpr double kRounding = 1e-9;

std::optional<Plan> rival_of(const Problem& problem, const Plan& plan) {
  const CostSource source = cost_source(problem.draft());
  const bool comparable = source != CostSource::stated && source != CostSource::disturbed;
  if (!comparable || plan.value <= 0) return std::nullopt;
  return best_uncut_plan(problem);
}

bool is_estimated(const Problem& problem) {
  return cost_source(problem.draft()) == CostSource::estimated;
}

// Such a plan stands beside the rival that it is.
bool is_rival(const Plan& plan, const Plan& rival) {
  return is_uncut(plan) && plan.value <= rival.value * (1 + kRounding);
}

}  // namespace

std::string uncut_sentence(const Problem& problem, const Plan& plan) {
  const std::optional<Plan> rival = rival_of(problem, plan);
  if (!rival) return {};
  const char* models =
      problem.model_count() > 1 ? "the models uncut, one after the other," : "the model uncut";
  if (is_rival(plan, *rival)) {
    return fmt::format(
        "{} on {}: no cut is {}", models,
        fmt::join(device_names(problem, devices_of_uncut(plan)), ", "),
        is_estimated(problem) ? "estimated to gain more than the error" : "predicted to gain");
  }
  const std::string how = is_estimated(problem) ? fmt::format("estimated, to within {:.0f} %",
                                                              100 * kErrorOfEstimatedRatios)
                                                : "predicted";
  return fmt::format("{:.3g} times as fast as {} on {} ({})", rival->value / plan.value, models,
                     fmt::join(device_names(problem, devices_of_uncut(*rival)), ", "), how);
}

nlohmann::ordered_json uncut_json(const Problem& problem, const Plan& plan) {
  const std::optional<Plan> rival = rival_of(problem, plan);
  if (!rival) return nullptr;
  return {{"devices", device_names(problem, devices_of_uncut(*rival))},
          {"value", rival->value},
          {"speed_up", rival->value / plan.value},
          {"plan_is_uncut", is_rival(plan, *rival)}};
}

}  // namespace placewright::cli
