#include "analysis/more_of.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analysis/carried_plan.h"
#include "analysis/cuts.h"
#include "analysis/variation.h"
#include "evaluate/memory.h"
#include "planning/sizes.h"
#include "problem/memory_spaces.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// Differences below this are rounding.
constexpr double kNoGain = 1e-9;

struct Candidate {
  Asset asset;
  double weight;
};

void keep_heaviest(std::vector<Candidate>& candidates, std::size_t count) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
  if (candidates.size() > count) candidates.resize(count);
}

bool may_run_in(const Problem& problem, GroupId group, SpaceId space) {
  return std::ranges::any_of(problem.devices(), [&](DeviceId device) {
    return problem.space(device) == space && problem.group_allowed(group, device);
  });
}

// How many groups that sit elsewhere could run in a memory space, but for its size.
std::vector<Candidate> full_spaces(const Problem& problem, const Plan& plan) {
  const MemoryLedger memory(problem, plan.placement);
  std::vector<Candidate> candidates;
  for (const DeviceId device : first_devices_of_spaces(problem)) {
    if (memory.capacity(device) == kInfinity) continue;
    double kept_out = 0;
    for (const GroupId group : problem.groups()) {
      const DeviceId home = plan.placement[problem.group_ops(group).front()];
      if (problem.same_space(home, device) || memory.fits_group(group, device)) continue;
      if (may_run_in(problem, group, problem.space(device))) kept_out += 1;
    }
    if (kept_out > 0) candidates.push_back({{AssetKind::memory, device}, kept_out});
  }
  return candidates;
}

std::vector<Candidate> used_links(const Problem& problem, const Plan& plan) {
  std::vector<Candidate> candidates;
  const std::vector<Cut> cuts = cuts_of(problem, plan);
  if (problem.interconnect() == InterconnectKind::host) {
    if (!cuts.empty()) candidates.push_back({{AssetKind::bandwidth}, 1});
    return candidates;
  }
  // Devices of one memory have the same links, so the first of them stands for all.
  Table<SpaceId, DeviceId> first(problem.space_count());
  for (const DeviceId device : first_devices_of_spaces(problem)) {
    first[problem.space(device)] = device;
  }
  std::map<std::pair<DeviceId, DeviceId>, double> carried;
  for (const Cut& cut : cuts) {
    std::set<DeviceId> receivers;  // a tensor travels once to each memory
    for (const DeviceId to : cut.to) receivers.insert(first[problem.space(to)]);
    const DeviceId sender = first[problem.space(cut.from)];
    for (const DeviceId to : receivers) {
      carried[{sender, to}] += problem.link_time(cut.tensor, sender, to);
    }
  }
  for (const auto& [pair, time] : carried) {
    if (time > 0) candidates.push_back({{AssetKind::bandwidth, pair.first, pair.second}, time});
  }
  return candidates;
}

std::vector<Candidate> busy_devices(const Problem& problem, const Plan& plan) {
  Table<DeviceId, double> busy(problem.device_count(), 0);
  for (const OpId op : problem.ops()) {
    busy[plan.placement[op]] += problem.time(op, plan.placement[op]);
  }
  std::vector<Candidate> candidates;
  for (const DeviceId device : problem.devices()) {
    if (busy[device] > 0) candidates.push_back({{AssetKind::speed, device}, busy[device]});
  }
  return candidates;
}

ProblemDraft with_more(const Problem& problem, const Asset& asset, double factor) {
  switch (asset.kind) {
    case AssetKind::memory:
      return with_memory(problem.draft(), asset.device, factor);
    case AssetKind::bandwidth:
      return asset.to.valid() ? with_bandwidth(problem.draft(), asset.device, asset.to, factor)
                              : with_bandwidth(problem.draft(), factor);
    case AssetKind::speed:
      return with_speed(problem.draft(), asset.device, factor);
    case AssetKind::device:
      return with_device_count(problem.draft(), countable_devices(problem.draft()) + 1);
  }
  return problem.draft();
}

std::string unit_text(const Problem& problem, const Asset& asset, double step) {
  if (asset.kind == AssetKind::memory) {
    const double memory = problem.space_memory(problem.space(asset.device));
    return fmt::format("+{} (+{:g} %)", size_text(memory * step), 100 * step);
  }
  return asset.kind == AssetKind::device ? "+1" : fmt::format("+{:g} %", 100 * step);
}

// Where another device needs no links that the problem does not state, and of sets of resources one
// goes with one resource more.
bool can_have_one_more(const Problem& problem) {
  const std::size_t there = countable_devices(problem.draft());
  if (are_sets_of_resources(problem.draft().cluster)) {
    return are_in_one_memory(problem.draft().cluster) &&
           countable_devices(with_device_count(problem.draft(), there + 1)) > there;
  }
  return problem.interconnect() == InterconnectKind::host && there > 0;
}

// Better plans travel both ways, so that the luck of one search does not look like a gain.
void hand_on(const Problem& problem, const Plan& plan, PlanOutcome& outcome) {
  std::optional<Plan> carried = valid_carried_plan(problem, plan.placement, plan);
  if (!carried || carried->value >= outcome.value()) return;
  outcome.answer.plan = std::move(carried);
  outcome.answer.found_by = "plan of another run";
}

// The plan with more, where it needs no device that is not there.
void take_back(const Problem& problem, const Plan& plan, PlanOutcome& outcome) {
  const bool known =
      std::all_of(plan.placement.begin(), plan.placement.end(),
                  [&](DeviceId device) { return device.index() < problem.device_count(); });
  const bool replicas_known =
      std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
        return std::all_of(stage.devices.begin(), stage.devices.end(), [&](DeviceId device) {
          return device.index() < problem.device_count();
        });
      });
  if (known && replicas_known) hand_on(problem, plan, outcome);
}

}  // namespace

std::string text_of(const Problem& problem, const Asset& asset) {
  const auto space = [&](DeviceId device) { return problem.space_name(problem.space(device)); };
  switch (asset.kind) {
    case AssetKind::memory:
      return fmt::format("memory of {}", space(asset.device));
    case AssetKind::bandwidth:
      return asset.to.valid()
                 ? fmt::format("bandwidth from {} to {}", space(asset.device), space(asset.to))
                 : "bandwidth to and from the host";
    case AssetKind::speed:
      return fmt::format("speed of {}", problem.device(asset.device).name);
    case AssetKind::device:
      return fmt::format("one more {}", countable_word(problem.draft().cluster));
  }
  return "";
}

std::vector<Asset> scarce_assets(const Problem& problem, const Plan& plan, std::size_t count) {
  std::vector<Asset> assets;
  const std::size_t each = std::max<std::size_t>(1, count / 3);
  for (auto candidates :
       {full_spaces(problem, plan), used_links(problem, plan), busy_devices(problem, plan)}) {
    keep_heaviest(candidates, each);
    for (const Candidate& candidate : candidates) assets.push_back(candidate.asset);
  }
  if (can_have_one_more(problem)) assets.push_back({AssetKind::device});
  if (assets.size() > count) assets.resize(count);
  return assets;
}

Sensitivity what_more_brings(const Problem& problem, const Plan& plan, const Registry& registry,
                             PlanRequest request, const std::vector<Asset>& assets, double step,
                             const std::atomic<bool>* interrupted) {
  const Control whole("explain", request.budget);
  request.budget.seconds /= static_cast<double>(assets.size() + 1);
  Sensitivity result;
  result.budget = request.budget;
  request.start = &plan;
  result.as_it_is = make_plan(problem, registry, request, interrupted);
  if (!result.as_it_is.answer.plan) return result;
  std::vector<Problem> larger;
  for (const Asset& asset : assets) {
    // Planners end a little late, and later on a busy machine.
    if (whole.remaining() <= 0) break;
    Problem with_it(with_more(problem, asset, 1 + step));
    const Plan& base = *result.as_it_is.answer.plan;
    const std::optional<Plan> start = valid_carried_plan(with_it, base.placement, base);
    request.start = start ? &*start : nullptr;
    MoreOf more{asset, unit_text(problem, asset, step),
                make_plan(with_it, registry, request, interrupted)};
    if (!more.outcome.answer.plan) continue;
    take_back(problem, *more.outcome.answer.plan, result.as_it_is);
    result.more.push_back(std::move(more));
    larger.push_back(std::move(with_it));
  }
  const Plan& base = *result.as_it_is.answer.plan;
  for (std::size_t i = 0; i < larger.size(); ++i) {
    MoreOf& more = result.more[i];
    hand_on(larger[i], base, more.outcome);
    more.value = verified_value(larger[i], *more.outcome.answer.plan);
    more.gain = base.value - more.value;
    if (std::abs(more.gain) <= kNoGain * base.value) more.gain = 0;
  }
  std::stable_sort(result.more.begin(), result.more.end(),
                   [](const MoreOf& a, const MoreOf& b) { return a.gain > b.gain; });
  return result;
}

std::vector<SamePlanGain> gains_of_same_plan(const Problem& problem, const Plan& plan,
                                             const std::vector<Asset>& assets, double step) {
  // A list schedule may beat the plan's own order: that is no gain of the asset's.
  const auto same = valid_carried_plan(problem, plan.placement, plan);
  const double base = same ? std::min(plan.value, same->value) : plan.value;
  std::vector<SamePlanGain> gains;
  for (const Asset& asset : assets) {
    if (asset.kind == AssetKind::memory || asset.kind == AssetKind::device) continue;
    const Problem with_it(with_more(problem, asset, 1 + step));
    const auto carried = valid_carried_plan(with_it, plan.placement, plan);
    if (carried) gains.push_back({asset, carried->value, base - carried->value});
  }
  std::stable_sort(gains.begin(), gains.end(),
                   [](const SamePlanGain& a, const SamePlanGain& b) { return a.gain > b.gain; });
  return gains;
}

}  // namespace placewright
