// A plan as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing: the JSON trace event
// format.
//
// Groups of tracks: `devices` has one track for each device (one for each lane in use where
// several ops run at once), `links` one for each direction of a link that carries something (more
// where transfers may overlap), `models` one for each model,
// `resources` one for each resource that devices share. On one track slices nest or follow each
// other; they never overlap otherwise.
//
//   schedules  a slice for each op and each transfer
//   calls      a slice for each call, and in it, one after the other, the tensors in, the ops, the
//              tensors out
//   pipelines  samples in the steady state (problem/pipeline_samples.h)
//
// Times are whole nanoseconds: both ends of a slice are rounded, so slices that touch in the plan
// touch in the trace. A problem without a unit is shown as if its unit were milliseconds.
//
// Reference: "Trace Event Format" (Google), complete events ("X") and metadata events ("M").

#pragma once

#include <span>
#include <string>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Something that really happened, in the problem's unit since the start.
struct MeasuredSlice {
  DeviceId device;
  std::string name;
  double start = 0;
  double end = 0;
};

// With a real run beside the plan, the group `measured` has a track for each device.
std::string trace_json(const Problem& problem, const Plan& plan,
                       std::span<const MeasuredSlice> measured = {});

}  // namespace placewright
