#include "planning/time_shares.h"

#include <algorithm>

namespace placewright {
namespace {

// A quick planner ends by itself; one that needs this much of what is left is stopped.
constexpr double kQuickShare = 0.25;
// The same where one of our own has found a plan: another of our own may take a fifth, or eight
// times what all before have taken, up to half; one that is here for comparison less, since it
// hardly ever finds a better plan; a yardstick has its claim only.
constexpr double kOwnQuickShare = 0.2;
constexpr double kMostOwnQuickShare = 0.5;
constexpr double kPatience = 8;
constexpr double kComparisonShare = 0.1;
// Beyond so many ops exact planners prove little: their claim on the time falls with the size.
// Those that cannot begin at all hand it on at once.
constexpr double kProvableOps = 8000;
// Up to so many ops they prove most plans in a second, and what improves plans has little left to
// improve: each gets this much of what is left, since a proof that is cut short is worth nothing.
constexpr std::size_t kSmallOps = 32;
constexpr double kSmallShare = 0.5;
// Up to so many ops quick and exact members need some milliseconds. All of them together may take
// this many seconds beyond the limit: on a loaded machine it may be over before one has begun.
constexpr std::size_t kTinyOps = 8;
constexpr double kTinySeconds = 1;

// Of the time that is left, when a quick planner's turn comes.
double quick_share(const PlannerEntry& member, const Moment& moment) {
  const bool own = turn(member) == Turn::own_quick;
  if (!moment.quick_plan) return own ? 1 : kQuickShare;
  if (member.role == Role::yardstick) return 0;
  if (!own) return kComparisonShare;
  return std::clamp(kPatience * moment.elapsed / moment.left, kOwnQuickShare, kMostOwnQuickShare);
}

bool solves_at_once(const PlannerEntry& member, const Problem& problem) {
  return problem.op_count() <= kTinyOps &&
         (member.strength == Strength::exact || member.effort == Effort::quick);
}

}  // namespace

Turn turn(const PlannerEntry& entry) {
  if (entry.effort == Effort::portfolio) return Turn::portfolio;
  if (entry.effort == Effort::instant) return Turn::instant;
  if (entry.strength == Strength::exact) return Turn::proof;
  if (entry.effort == Effort::anytime) return Turn::improvement;
  return entry.role == Role::own ? Turn::own_quick : Turn::quick;
}

double claim(const PlannerEntry& member, const Problem& problem) {
  if (member.strength != Strength::exact) return member.share;
  return member.share * std::min(1.0, kProvableOps / static_cast<double>(problem.op_count()));
}

double share(const PlannerEntry& member, const Problem& problem, const Moment& moment) {
  if (member.effort == Effort::instant) return 1;
  double part = claim(member, problem) / moment.claims;
  if (member.strength == Strength::exact && problem.op_count() <= kSmallOps) {
    part = std::max(part, kSmallShare);
  }
  if (member.effort == Effort::quick) part = std::max(part, quick_share(member, moment));
  return part;
}

double seconds_beyond(const PlannerEntry& member, const Problem& problem, double left) {
  return solves_at_once(member, problem) ? kSmallShare * std::min(kTinySeconds, left + kTinySeconds)
                                         : 0;
}

}  // namespace placewright
