// Plan files: what a planner answered, tied to its problem by path and digest.
//
// Our own format, version 1; infinite numbers are null, and there is a placement only where there
// is a plan:
//
//   {"placewright": "plan", "version": 1,
//    "problem": {"path": "model.json",     relative to the plan's folder
//                "digest": "…",            SHA-256 of that file
//                "format": "msr",          where it was forced
//                "cluster": {"path": "cluster.json", "digest": "…"},
//                "embedded": {…}},         the whole problem, in our own format
//    "rules": {…},                         as in a problem file; what is absent is the problem's
//    "status": "feasible", "objective": "latency",
//    "planner": "heft", "settings": {"order": "rank"}, "seed": 1,
//    "value": 1.5, "lower_bound": 1.2, "gap": 0.2, "bound_method": "critical path",
//    "unit": "ms", "seconds": 0.01, "reason": "time limit",
//    "placement": {"conv1": "gpu0"},
//    "schedule": {"ops": [{"op": "conv1", "device": "gpu0", "start": 0, "end": 1}],
//                 "transfers": [{"tensor": 0, "leg": "direct", "from": "gpu0", "to": "gpu1",
//                                "start": 1, "end": 2}]},
//    "stages": [{"devices": ["gpu0"], "ops": ["conv1"], "load": 1}],
//    "calls": [{"device": "gpu0", "ops": ["conv1"], "start": 0, "end": 1}]}
//
// A tensor is numbered, as in the problem, or named. Also read: the MSR expert splits
// {fpgas: [{nodes}], cpus: [{nodes}]}, which give a placement and nothing else.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/json.h"
#include "formats/plan_record.h"
#include "formats/problem_file.h"
#include "formats/stated_rules.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct PlanWriteOptions {
  bool embed = false;     // the whole problem with it
  std::string path = {};  // where the plan will lie; the problem's path is written relative to it
};

std::string write_plan(const Problem& problem, const PlanFile& file,
                       const PlanWriteOptions& options = {});

// What a plan file says about its problem, before the problem is known.
struct PlanReference {
  ProblemReference problem;             // paths resolved against the plan's folder
  std::optional<Objective> objective;   // absent: as the problem says
  StatedRules rules;                    // the rest are the rules of the problem's file
  std::optional<ProblemFile> embedded;  // the whole problem, where the plan holds it
};

// The problem of a plan, under the objective and rules of the plan. Where it was given apart
// (`problem_path`), that file is read instead of the one that the plan names; what `given` says
// replaces what the plan says about reading it. Throws InputError.
ProblemFile problem_of_plan(PlanReference reference, const std::string& plan_path,
                            const std::optional<std::string>& problem_path = {},
                            const ReadOptions& given = {});

// A plan file that has been parsed, but not yet read: what it says about its problem comes first,
// then the plan, which only makes sense for that problem. All throw InputError.
class PlanDocument {
 public:
  // `path` is the plan's own path, for messages and for the folder; it need not exist.
  PlanDocument(std::string_view text, std::string path);

  [[nodiscard]] PlanReference reference() const;

  // `op_ids` (ProblemFile::op_ids) are what an expert split's node ids refer to; where it is empty
  // the ids are the ops' names. Whether the plan is a good one is for the verifier to say; here it
  // only has to name ops and devices of the problem, every op once.
  [[nodiscard]] PlanFile read(const Problem& problem,
                              std::span<const std::string> op_ids = {}) const;

 private:
  [[nodiscard]] bool is_ours() const;

  std::string path_;
  JsonDocument document_;
};

}  // namespace placewright
