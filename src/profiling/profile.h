// Models measured on the devices of this machine, as one problem.
//
// Devices of one kind are measured once, on the first of them. For each model and kind: the times
// of the ops (op_times.h), what the backend fused (fused_ops.h: colocation groups) and what cutting
// at each tensor costs (cut_cost.h). For each pair of kinds: the hand-over of tensors
// (hand_over.h).
//
// Where sets of cores overlap (machine/target_cluster.h), tensors do not travel between them: who
// receives one bears the hand-over, and the time to wake up. A plan that uses a part of the cores
// uses the others too, so there the times of a set are those beside busy ones (loading.h). So they
// are where several models share the devices, and each model then also finds the caches as the one
// before it left them (crowding.h). One model on devices that share no core has the times of a
// device alone: most of its plans leave the others idle most of the time, and one device alone is
// the plan to beat.
//
// Cuts take most of the time of a profile. Whoever wants to know which cores a whole model gets and
// when, as with several models at once, leaves them out (ProfileRequest::whole).
//
// Measuring ends in time (ProfileRequest::seconds). Where that is too short for cuts the models
// stay whole, and the notes say so; a series that got too few runs is not valid.
//
// Where a measurement was disturbed the profile says so in
// `doubts` and in the problem's `origin`; it is never silently wrong.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/model_files.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "problem/draft.h"
#include "profiling/crowding.h"
#include "profiling/cut_cost.h"
#include "profiling/hand_over.h"
#include "profiling/loading.h"
#include "profiling/measurement.h"

namespace placewright {

// One model on one kind.
struct KindProfile {
  std::string kind;
  std::string device;  // that was measured
  Precision precision =
      Precision::by_default;  // what it computes in there; default: nothing was run
  Measured latency;           // of the whole model
  double scale = 1;           // of the counters to the latency
  std::optional<Loading>
      beside_busy_cores;             // nullopt: nothing is beside it, or its plans leave that idle
  std::optional<TurnTimes> in_turn;  // with the other models; nullopt: there are none
  std::size_t executed = 0;          // nodes of the backend that stand for ops
  std::size_t unsupported = 0;
  CutCost cut;
  bool cuts_disturbed = true;  // its trials are not to be believed, or there are none

  // The times of all ops in the problem, relative to the latency.
  [[nodiscard]] double loaded() const;
  // Why what was measured should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

struct ModelProfile {
  std::string name;
  std::size_t ops = 0;
  std::size_t fused = 0;  // groups that stay together, single ops included
  std::vector<KindProfile> kinds;
};

struct LinkProfile {
  std::string from;  // kinds
  std::string to;
  HandOver cost;
};

struct Profile {
  ProblemDraft draft;
  std::vector<ModelProfile> models;
  std::vector<LinkProfile> links;
  std::vector<std::string> doubts;  // measurements that are not valid, in sentences
  std::vector<std::string> notes;  // ops that a device does not support, what there was no time for
};

struct ProfileRequest {
  std::vector<ModelFile> files;
  std::vector<Target> targets;  // at least one; all of the backend that reads the files
  std::string folder;           // where the problem file will lie
  bool whole = false;   // no model will be cut: all of its ops are colocated, no cut is tried
  double seconds = 60;  // for each model: then measuring ends with what it has
  MeasureOptions measure;
};

// Nullopt if it was interrupted. Throws std::invalid_argument for targets of several backends,
// InputError and RuntimeError.
std::optional<Profile> profile_models(const ProfileRequest& request);

}  // namespace placewright
