// What limits a plan: why its value is not smaller.
//
// Schedules: the critical path, walked backwards from the op that decides the value. Every step
// starts when something else ends: the input it needed last, the op before it on its device, the
// transfer before it at its port; or at its model's arrival. Where the plan starts it later than
// any of these, the time between is idle. So steps and idle times together are exactly the time
// from the first step's start to the end. For `total-completion` it is the path of the model with
// the largest share of the value.
// Calls: the same over calls and host ops.
// Pipelines: the stage with the largest load; `phased` training has one for each pass.
//
// O((ops + transfers) log).

#pragma once

#include <cstddef>
#include <vector>

#include "evaluate/pipeline.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "problem/spelling.h"

namespace placewright {

enum class StepKind { op, transfer, call };
template <>
inline constexpr auto kSpellings<StepKind> = std::to_array<Spelling<StepKind>>({
    {StepKind::op, "op"},
    {StepKind::transfer, "transfer"},
    {StepKind::call, "call"},
});

enum class WaitedFor { nothing, arrival, input, device, resource, port };
template <>
inline constexpr auto kSpellings<WaitedFor> = std::to_array<Spelling<WaitedFor>>({
    {WaitedFor::nothing, "nothing", "it starts at time 0"},
    {WaitedFor::arrival, "arrival", "of its model"},
    {WaitedFor::input, "input", "the step before made or brought what it reads"},
    {WaitedFor::device, "device", "the device was busy with the step before"},
    {WaitedFor::resource, "resource", "another device was, and held resources that it needs"},
    {WaitedFor::port, "port", "the sender's or receiver's port was"},
});

struct PathStep {
  StepKind kind = StepKind::op;
  std::size_t index = 0;  // of the op, of the schedule's transfer, of the plan's call
  double start = 0;
  double end = 0;
  WaitedFor waited_for = WaitedFor::nothing;
  double idle = 0;                         // between what it waited for and its start
  double waited = 0;                       // from when all that it reads was there to its start
  std::vector<ResourceId> resources = {};  // that the step before held, if it waited for them
};

struct CriticalPath {
  std::vector<PathStep> steps;  // in order of time
  double ops = 0;               // time in ops and calls
  double transfers = 0;
  double idle = 0;
  double device_waits = 0;  // time in steps whose result nobody on the path needs: they only kept
                            // the device or the port busy
};

struct FullestStage {
  std::size_t stage = 0;  // of the plan's list
  bool backward = false;  // phased: which pass it limits
  double load = 0;
  PassLoad work;  // compute, in and out of one replica
};

// Empty for pipelines.
CriticalPath critical_path(const Problem& problem, const Plan& plan);

// Empty for schedules and calls.
std::vector<FullestStage> fullest_stages(const Problem& problem, const Plan& plan);

}  // namespace placewright
