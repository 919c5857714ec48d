// Run files: what `placewright run PLAN -o FILE` measured on the real devices, for the report.
//
// Our own format, version 1 (docs/schema/run-output.json); all times are milliseconds:
//
//   {"placewright": "run", "version": 1, "objective": "latency", "unit": "ms", "predicted": 1.2,
//    "measured": {"valid": true, "median": 1.3, "low": 1.2, "high": 1.5, "kept": 50,
//                 "rejected": 0, "watched": true},
//    "samples": 50, "interrupted": false,
//    "models": [{"name": "alexnet", "predicted": 1.2, "completion": {…}}],
//    "devices": [{"name": "cpu:0", "segments": 1, "ops": 7, "predicted": 1.1, "busy": 1.1}],
//    "segments": [{"device": "cpu:0", "ops": 7, "first_op": "a", "last_op": "g",
//                  "predicted": 1.1, "measured": {…}}],
//    "transfers": [{"tensor": "g", "from": "cpu:0", "to": "toy:0", "bytes": 4096,
//                   "measured": {…}}],
//    "timeline": [{"device": "cpu:0", "segment": 1, "sample": 0, "start": 0, "end": 1.1},
//                 {"device": "toy:0", "transfer": 1, "sample": 0, "start": 1.1, "end": 1.2}],
//    "baselines": [{"name": "2 threads", "latency": {…}, "per_sample": {…}}],
//    "precision": "bf16",
//    "outputs": {"equal": true, "largest_difference": 0, "tolerance": 8e-2,
//                "against_f32": {"largest_error": 0.01, "mean_error": 0.002, "inputs": 8,
//                                "same_top": 8}}}
//
// Transfers are copies between two memories; the device of one is the receiver. Files without them,
// without `precision`, `watched`, `tolerance` and `samples`, and without what was predicted of
// models and devices are read as well.
//
// A run file does not hold its plan. It belongs to a plan with the same objective, devices and
// value that places the ends of its segments where they ran.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/measured.h"
#include "problem/plan.h"
#include "problem/precision.h"
#include "problem/problem.h"

namespace placewright {

struct RunModel {
  std::string name;
  std::optional<double> predicted;     // when it ends; schedules only
  std::optional<Measured> completion;  // the same, measured
};

struct RunDevice {
  std::string name;
  std::size_t segments = 0;
  std::size_t ops = 0;
  double predicted = 0;  // of `busy`; a segment's time is shared by its replicas
  double busy = 0;       // per sample
};

struct RunSegment {
  std::string device;  // of replicas all of them: "cpu:0, cpu:1"
  std::size_t ops = 0;
  std::string first_op;
  std::string last_op;
  double predicted = 0;
  Measured measured;
};

// A tensor copied from the memory of one device to that of another.
struct RunTransfer {
  std::string tensor;
  std::string from;
  std::string to;
  double bytes = 0;
  Measured measured;
};

struct RunEvent {
  std::size_t device = 0;               // in `devices`
  std::optional<std::size_t> segment;   // in `segments`, or
  std::optional<std::size_t> transfer;  // in `transfers`
  std::size_t sample = 0;
  double start = 0;
  double end = 0;
};

struct RunBaseline {
  std::string name;
  Measured latency;
  Measured per_sample;
  bool is_plan = false;  // the same configuration as the plan, which was measured once for both
  std::optional<Measured> total_completion = {};  // of several models, where that is the objective
  std::vector<double> turns = {};                 // its medians in the same turns as the plan's
};

// What computing in less than f32 costs: the unsplit model beside itself in f32, relative to the
// largest value of an output.
struct RunAccuracy {
  std::optional<double> largest_error;  // absent: not a number
  std::optional<double> mean_error;
  std::size_t inputs = 0;  // that were tried
  std::optional<std::size_t>
      same_top;  // of these the largest value is at the same place; classifiers
};

struct RunOutputs {
  bool equal = false;
  std::optional<double> largest_difference;  // absent: not a number
  std::optional<double> tolerance;
  std::optional<RunAccuracy> against_f32 = {};  // absent: not tried, or they compute in f32
};

struct RunFile {
  Objective objective = Objective::latency;
  double predicted = 0;
  Measured measured;
  std::vector<double> turns = {};  // the medians of the turns in which it ran beside the baselines
  std::optional<std::size_t> samples;  // of a pipeline in blocks, which `measured` counts
  bool interrupted = false;
  std::vector<RunModel> models;
  std::vector<RunDevice> devices;
  std::vector<RunSegment> segments;
  std::vector<RunTransfer> transfers;
  std::vector<RunEvent> timeline;  // of the median sample, or of a stretch of a pipeline
  std::vector<RunBaseline> baselines;
  std::optional<Precision> precision = {};  // what the models compute in
  std::optional<RunOutputs> outputs;        // absent: not compared
  std::vector<std::string> warnings;        // unknown keys; not written

  // The time of the baseline that the plan's value is compared with.
  [[nodiscard]] const Measured& rival(const RunBaseline& baseline) const {
    if (baseline.total_completion) return *baseline.total_completion;
    return objective == Objective::throughput ? baseline.per_sample : baseline.latency;
  }
  // The fastest that was measured, valid or not: beside the rest of them a plan would look better
  // than it is. nullptr if nothing was.
  [[nodiscard]] const RunBaseline* best_baseline() const;
};

// Throws InputError.
RunFile parse_run(std::string_view text, const std::string& origin);

// The same file as text.
std::string write_run(const RunFile& run);

// Why this is no run of the plan, in one sentence; empty: it may be one.
std::string mismatch(const RunFile& run, const Problem& problem, const Plan& plan);

}  // namespace placewright
