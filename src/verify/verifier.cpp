#include "verify/verifier.h"

#include <array>
#include <utility>

#include "verify/calls.h"
#include "verify/findings.h"
#include "verify/pipeline.h"
#include "verify/placement.h"
#include "verify/schedule.h"
#include "verify/statement.h"

namespace placewright {
namespace {

constexpr std::size_t kCodeCount = static_cast<std::size_t>(ViolationCode::further_violations) + 1;

constexpr std::array<std::pair<ViolationCode, std::string_view>, kCodeCount> kNames{{
    {ViolationCode::placement_incomplete, "placement-incomplete"},
    {ViolationCode::unsupported_device, "unsupported-device"},
    {ViolationCode::pin_broken, "pin-broken"},
    {ViolationCode::colocation_broken, "colocation-broken"},
    {ViolationCode::no_link, "no-link"},
    {ViolationCode::memory_exceeded, "memory-exceeded"},
    {ViolationCode::peak_memory_exceeded, "peak-memory-exceeded"},
    {ViolationCode::resource_exceeded, "resource-exceeded"},
    {ViolationCode::value_wrong, "value-wrong"},
    {ViolationCode::bound_above_value, "bound-above-value"},
    {ViolationCode::gap_wrong, "gap-wrong"},
    {ViolationCode::status_wrong, "status-wrong"},
    {ViolationCode::schedule_missing, "schedule-missing"},
    {ViolationCode::not_a_number, "not-a-number"},
    {ViolationCode::op_duration_wrong, "op-duration-wrong"},
    {ViolationCode::starts_before_arrival, "starts-before-arrival"},
    {ViolationCode::input_not_arrived, "input-not-arrived"},
    {ViolationCode::device_overlap, "device-overlap"},
    {ViolationCode::transfer_missing, "transfer-missing"},
    {ViolationCode::transfer_duplicate, "transfer-duplicate"},
    {ViolationCode::transfer_unneeded, "transfer-unneeded"},
    {ViolationCode::transfer_receiver_wrong, "transfer-receiver-wrong"},
    {ViolationCode::transfer_endpoints_wrong, "transfer-endpoints-wrong"},
    {ViolationCode::transfer_duration_wrong, "transfer-duration-wrong"},
    {ViolationCode::transfer_too_early, "transfer-too-early"},
    {ViolationCode::port_overlap, "port-overlap"},
    {ViolationCode::stages_inconsistent, "stages-inconsistent"},
    {ViolationCode::stages_out_of_order, "stages-out-of-order"},
    {ViolationCode::replicas_not_allowed, "replicas-not-allowed"},
    {ViolationCode::not_contiguous, "not-contiguous"},
    {ViolationCode::stage_load_wrong, "stage-load-wrong"},
    {ViolationCode::period_too_short, "period-too-short"},
    {ViolationCode::calls_inconsistent, "calls-inconsistent"},
    {ViolationCode::call_missing, "call-missing"},
    {ViolationCode::too_many_calls, "too-many-calls"},
    {ViolationCode::calls_deadlock, "calls-deadlock"},
    {ViolationCode::call_start_too_early, "call-start-too-early"},
    {ViolationCode::call_duration_wrong, "call-duration-wrong"},
    {ViolationCode::call_overlap, "call-overlap"},
    {ViolationCode::further_violations, "further-violations"},
}};

constexpr bool listed_in_order() {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (static_cast<std::size_t>(kNames[i].first) != i) return false;
  }
  return true;
}
static_assert(listed_in_order());

constexpr auto kCodes = [] {
  std::array<ViolationCode, kCodeCount> codes{};
  for (std::size_t i = 0; i < kCodeCount; ++i) codes[i] = kNames[i].first;
  return codes;
}();

}  // namespace

std::string_view name_of(ViolationCode code) {
  return kNames[static_cast<std::size_t>(code)].second;
}

std::span<const ViolationCode> violation_codes() {
  return kCodes;
}

std::vector<Violation> verify(const Problem& problem, const Plan& plan) {
  verifying::Findings findings;
  if (!verifying::check_placement(problem, plan.placement, findings)) {
    return std::move(findings).take();
  }
  switch (problem.objective()) {
    case Objective::latency:
    case Objective::total_completion:
      verifying::check_schedule(problem, plan, findings);
      break;
    case Objective::throughput:
      verifying::check_pipeline(problem, plan, findings);
      break;
    case Objective::call_latency:
      verifying::check_calls(problem, plan, findings);
      break;
  }
  return std::move(findings).take();
}

std::vector<Violation> verify(const Statement& statement, double value) {
  verifying::Findings findings;
  verifying::check_statement(statement, value, findings);
  return std::move(findings).take();
}

double verified_value(const Problem& problem, const Plan& plan) {
  verifying::Findings ignored;
  if (!verifying::check_placement(problem, plan.placement, ignored)) return kInfinity;
  switch (problem.objective()) {
    case Objective::latency:
    case Objective::total_completion:
      return verifying::schedule_value(problem, plan);
    case Objective::throughput:
      return verifying::pipeline_value(problem, plan);
    case Objective::call_latency:
      return verifying::call_value(problem, plan);
  }
  return kInfinity;
}

std::vector<double> verified_loads(const Problem& problem, const Plan& plan) {
  verifying::Findings ignored;
  if (problem.objective() != Objective::throughput ||
      !verifying::check_placement(problem, plan.placement, ignored)) {
    return {};
  }
  return verifying::loads_of_stages(problem, plan);
}

}  // namespace placewright
