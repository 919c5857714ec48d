// What decides when a plan ends: a chain of ops, transfers and calls, each of which starts when the
// one before it ends.
//
// Walks back from what ends last. Of the activities that end when an activity starts, one whose
// result it needs is preferred to one that merely kept the device or the port busy. The chain stops
// at an activity that waited for nothing. O((ops + transfers) log).

#pragma once

#include <cstddef>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

enum class LinkReason {
  first,   // waits for nothing
  input,   // needs the result of the one before
  device,  // the device was busy with the one before
  port,    // the sender's or the receiver's port was
};

struct ChainLink {
  enum class Kind { op, transfer, call };
  Kind kind = Kind::op;
  std::size_t index = 0;  // of the op, of the schedule's transfer, of the plan's call
  LinkReason reason = LinkReason::first;
};

// In order of time. Empty for pipelines.
std::vector<ChainLink> critical_chain(const Problem& problem, const Plan& plan);

// Start and end of each op of a plan in calls: those of its call; on the host as early as possible.
struct OpTimes {
  Table<OpId, double> start;
  Table<OpId, double> end;
};
OpTimes times_in_calls(const Problem& problem, const Plan& plan);

}  // namespace placewright
