// What a little more of something would bring: memory of a device, bandwidth of a link, speed of a
// device, one more device, or one more core where devices are sets of cores.
//
// Nothing is guessed: the problem is planned again with the larger number, and once more as it is,
// by the same planner with the same budget, both starting from the plan in question. A better plan
// that one of these runs finds is tried in the others, so that the luck of a search is no gain. The
// gain is the difference of the two plans' values; the verifier has accepted both. A gain of 0 says
// that this planner found nothing better with it, not that nobody could.
//
// Candidates are what the plan uses most: memory that is too full for a group of ops that could
// run there, the links (or the host interconnect) that carry most, the busiest devices.

#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "planning/service.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "problem/spelling.h"

namespace placewright {

enum class AssetKind { memory, bandwidth, speed, device };
template <>
inline constexpr auto kSpellings<AssetKind> = std::to_array<Spelling<AssetKind>>({
    {AssetKind::memory, "memory"},
    {AssetKind::bandwidth, "bandwidth"},
    {AssetKind::speed, "speed"},
    {AssetKind::device, "device"},
});

// What there might be more of.
struct Asset {
  AssetKind kind = AssetKind::memory;
  DeviceId device = {};  // memory, speed: whose; bandwidth of a link: the sender
  DeviceId to = {};      // bandwidth of a link: the receiver; not valid: of the interconnect
  // Memory and links are those of memory spaces: the first device of a space stands for it.
};

// One phrase: "memory of d0", "bandwidth from d0 to d1".
std::string text_of(const Problem& problem, const Asset& asset);

struct MoreOf {
  Asset asset;
  std::string unit;     // how much more, in words
  PlanOutcome outcome;  // the plan with more
  double value = kInfinity;
  double gain = 0;  // value as it is, less the value with more
};

struct Sensitivity {
  PlanOutcome as_it_is;      // the problem planned again without a change
  std::vector<MoreOf> more;  // the largest gain first
  Budget budget;             // of each of these plans
};

// The candidates for this plan, at most `count`, the most promising first.
std::vector<Asset> scarce_assets(const Problem& problem, const Plan& plan, std::size_t count);

// `step`: how much more, as a fraction (0.1 = 10 %). `request.budget.seconds` is for all plans
// together; each gets an equal share, and those whose
// turn comes after that time are left out. `request.start` is not looked at: `plan` is the start.
Sensitivity what_more_brings(const Problem& problem, const Plan& plan, const Registry& registry,
                             PlanRequest request, const std::vector<Asset>& assets, double step,
                             const std::atomic<bool>* interrupted = nullptr);

struct SamePlanGain {
  Asset asset;
  double value = kInfinity;  // of the plan with more
  double gain = 0;           // the plan's value less that
};

// What more of each asset brings if the plan stays as it is: evaluated again, not planned again.
// The largest gain first. A new plan may gain more; memory and devices, which a plan can only use
// when it changes, are passed over. O(assets x (ops + tensors) log).
std::vector<SamePlanGain> gains_of_same_plan(const Problem& problem, const Plan& plan,
                                             const std::vector<Asset>& assets, double step);

}  // namespace placewright
