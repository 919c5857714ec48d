// Models measured on the devices of this machine, as one problem.
//
// Devices of one kind are measured once, on the first of them. For each model and kind: the times
// of the ops (op_times.h), what the backend fused (fused_ops.h: colocation groups) and the cost of
// a cut (cut_cost.h; half of it to who sends and half to who receives). For each pair of kinds: the
// hand-over of tensors (hand_over.h).
//
// Where sets of cores overlap (machine/target_cluster.h), tensors do not travel between them: what a
// cut and the hand-over cost is stated for each tensor. A plan that uses a part of the cores uses
// the others too, so there the times of a set are those beside busy ones (crowding.h).
//
// Cuts take most of the time of a profile. Whoever wants to know which cores a whole model gets and
// when, as with several models at once, leaves them out (ProfileRequest::whole).
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
#include "profiling/cut_cost.h"
#include "profiling/hand_over.h"
#include "profiling/measurement.h"

namespace placewright {

// One model on one kind.
struct KindProfile {
  std::string kind;
  std::string device;  // that was measured
  Measured latency;    // of the whole model
  double scale = 1;    // of the counters to the latency
  double crowded = 1;  // times the latency while the other cores work too
  // Those runs; nothing where no other set of that size is beside it.
  std::optional<Measured> beside_busy_cores;
  std::size_t executed = 0;  // nodes of the backend that stand for ops
  std::size_t unsupported = 0;
  CutCost cut;
  bool cuts_disturbed = true;  // its trials are not to be believed, or there are none
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
  std::vector<std::string> notes;   // ops that a device does not support
};

struct ProfileRequest {
  std::vector<ModelFile> files;
  std::vector<Target> targets;  // at least one; all of the backend that reads the files
  std::string folder;           // where the problem file will lie
  bool whole = false;  // no model will be cut: all of its ops are colocated, no cut is tried
  MeasureOptions measure;
};

// Nullopt if it was interrupted. Throws std::invalid_argument for targets of several backends,
// InputError and RuntimeError.
std::optional<Profile> profile_models(const ProfileRequest& request);

}  // namespace placewright
