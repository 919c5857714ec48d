// Throughput of a pipeline: the load of the busiest device while samples stream through.
//
// For a device d and a pass (forward or backward; inference is all forward)
//
//   compute = sum of time(v, d) over the ops of the pass on d, and d's cut overheads
//   in      = transfers that enter d, each tensor once
//   out     = transfers that leave d; host interconnect: each tensor once, links: once for each
//             destination
//
// and the rules say how these make a load (sequential, overlapped, duplex) and how passes add up
// (interleaved, phased): semantics.md, "throughput". A transfer out belongs to the producer's pass;
// a transfer in too if an op of that pass on d reads it, else to the other pass. A transfer without
// a link, or an op on a device that cannot run it, makes the value infinite.
//
// Everything here looks at the whole placement, in O(ops + edges); pipeline_evaluator.h keeps the
// value while ops move.
//
// Reference: J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020 (the load of a set of ops).

#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Work of one device in one pass.
struct PassLoad {
  double compute = 0;
  double in = 0;
  double out = 0;

  // In the header for the inner loops of planners.
  [[nodiscard]] double load(TransferMode mode) const {
    switch (mode) {
      case TransferMode::sequential:
        return compute + in + out;
      case TransferMode::overlapped:
        return std::max(compute, in + out);
      case TransferMode::duplex:
        return std::max(compute, std::max(in, out));
    }
    return kInfinity;
  }

  friend bool operator==(const PassLoad&, const PassLoad&) = default;
};

struct DeviceLoad {
  PassLoad forward;
  PassLoad backward;

  [[nodiscard]] PassLoad& pass(bool is_backward) { return is_backward ? backward : forward; }
  [[nodiscard]] PassLoad both() const;
  // Interleaved: both passes as one; phased: the loads of the passes, added.
  [[nodiscard]] double load(const Rules& rules) const;

  friend bool operator==(const DeviceLoad&, const DeviceLoad&) = default;
};

// Ops without a device are left out, with what travels to and from them.
Table<DeviceId, DeviceLoad> pipeline_loads(const Problem& problem, const Placement& placement);

// Time per sample when each device is a stage of its own.
double pipeline_value(const Problem& problem, const Placement& placement);

// Time per sample of stages with replicas; the ops of a stage count as placed on its first device.
// Throws std::invalid_argument unless the stages hold every op once and have devices of their own.
double pipeline_value(const Problem& problem, std::span<const Stage> stages);

// Samples (micro-batches) whose tensors a stage holds at once: what peak memory counts
// (semantics.md, "Memory"). Stages are numbered from 0; `loop` says over how many memory spaces the
// schedule `interleaved` goes round.
struct StagePlace {
  std::size_t number = 0;
  std::size_t count = 1;
  std::size_t loop = 1;
};
double samples_in_flight(const Problem& problem, const StagePlace& stage);
// No stage of any plan holds more.
double most_samples_in_flight(const Problem& problem);
// How many memory spaces the first devices of the stages are in.
std::size_t loop_of(const Problem& problem, std::span<const Stage> stages);

// One stage for each device that has ops, with its load. The stages are in a topological order of
// the graph of devices (over forward ops) as far as it is acyclic; ties, and cycles, are broken by
// the earliest op.
std::vector<Stage> stages_of(const Problem& problem, const Placement& placement);
// The same without loads and offsets, for those who add replicas and ask for the value then.
std::vector<Stage> stages_to_evaluate(const Problem& problem, const Placement& placement);

// The placement with its stages and value.
Plan pipeline_plan(const Problem& problem, Placement placement);

// The stages, in the given order, with placement, loads and value. Throws as pipeline_value does.
Plan pipeline_plan(const Problem& problem, std::vector<Stage> stages);

// The same where stages that share resources could have a period below this: then every arrangement
// of few stages is looked at, and of many those of pipeline_plan (stage_arrangement.h).
Plan pipeline_plan_below(const Problem& problem, std::vector<Stage> stages, double below);

// Where devices share resources: states the offsets that the plan's stages leave out, which are
// those of a list (semantics.md, "throughput"). The stages hold every op once, on devices of their
// own. Nothing changes where there is no such list; the verifier says why.
void state_offsets(const Problem& problem, Plan& plan);

}  // namespace placewright
