// A problem as a reader or a generator writes it down: plain records, nothing checked yet.
//
// `Problem` (problem.h) checks a draft and freezes it into the arrays that planners work on.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placewright/problem/cluster.h"
#include "placewright/problem/ids.h"
#include "placewright/problem/objective.h"

namespace placewright {

// The time of an op on a device kind that cannot run it.
inline constexpr double kUnsupported = kInfinity;

struct Op {
  std::string name;  // unique within the problem
  std::string type;  // "Convolution", ...; may be empty
  ModelId model{0};
  double memory = 0;               // resident bytes of its own
  double flops = 0;                // estimated work; information only
  double spread = 0;               // of measured times, relative; information only
  bool backward = false;           // belongs to the backward pass of training
  DeviceId pinned_to;              // valid: it must run there
  std::vector<double> time;        // by kind; kUnsupported where the kind cannot run it
  std::vector<double> share = {};  // by kind, of the resources that its device uses; empty: all

  friend bool operator==(const Op&, const Op&) = default;
};

// What handing a tensor over costs a kind of device, in place of the device's own overheads.
struct CutOverhead {
  KindId kind;
  double send = 0;
  double receive = 0;

  friend bool operator==(const CutOverhead&, const CutOverhead&) = default;
};

struct Tensor {
  std::string name;  // may be empty
  OpId producer;
  std::vector<OpId> consumers;
  double bytes = 0;
  double host_time = 0;                // host interconnect: time out of, and into, an accelerator
  std::vector<double> link_times;      // links interconnect: devices x devices, row = sender;
                                       // empty: the links' latency and bandwidth decide
  std::string shape = {};              // "1x64x56x56 f32"; information only
  std::vector<CutOverhead> cuts = {};  // one for each kind at most

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// The file that a model was imported from, so that a plan can be run.
struct ModelSource {
  std::string path;                 // absolute, or relative to the problem file's folder
  std::string digest;               // SHA-256 of the file
  std::vector<std::string> shapes;  // of its inputs, where they were chosen: "image=1x3x224x224"
  std::string backend = {};         // that reads and runs it; empty: openvino

  friend bool operator==(const ModelSource&, const ModelSource&) = default;
};

struct Model {
  std::string name;
  double arrival = 0;
  double weight = 1;
  std::optional<double> deadline;
  std::optional<ModelSource> source = {};

  friend bool operator==(const Model&, const Model&) = default;
};

// Weights that several ops read: they occupy a device once, however many of the ops are there.
struct SharedWeight {
  std::string name;
  double bytes = 0;
  std::vector<OpId> ops;

  friend bool operator==(const SharedWeight&, const SharedWeight&) = default;
};

struct ProblemDraft {
  std::string name;
  TimeUnit unit = TimeUnit::none;
  Objective objective = Objective::latency;
  Rules rules;
  Cluster cluster;
  std::vector<Model> models;
  std::vector<Op> ops;
  std::vector<Tensor> tensors;
  std::vector<std::vector<OpId>> colocated;  // ops that must share a device
  std::vector<SharedWeight> shared_weights;
  std::vector<std::string> origin;  // where the numbers come from, in sentences

  friend bool operator==(const ProblemDraft&, const ProblemDraft&) = default;
};

// The same problem under another objective. Where the new one has one host, the host devices become
// the single device `cpu`; nothing else changes.
ProblemDraft with_objective(ProblemDraft draft, Objective objective);

}  // namespace placewright
