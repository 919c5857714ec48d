// Groups of ops that the page folds into one box, and where everything is drawn.
//
// A grouping gives every op a group. Groups stand in layers, each group has a drawing of its own
// ops; the page stacks the boxes, folded or not, so that folding one never moves ops inside
// another.
//
//   flat         one group without a frame: the whole graph
//   blocks       larger graphs: by the hierarchy of the names (name_blocks.h) where that divides the
//                ops evenly enough, else bands of layers; no two blocks wait for each other
//   parts        the same by names, in smaller pieces
//   models       several models: each one
//   colocated    ops that must share a device
//   stages       throughput: the stages of one plan
//   calls        call-latency: the calls of one plan
//   groups       what the planner of one plan looked at as one (hsdag)

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"
#include "report/layered_layout.h"

namespace placewright {

struct DrawnGroup {
  std::string name;
  std::vector<OpId> ops;
  std::uint32_t layer = 0;
  double width = 0;
  double height = 0;
};

struct EdgeBends {
  OpId from;
  OpId to;
  std::vector<Point> bends;
};

struct Grouping {
  std::string name;
  bool framed = true;
  std::vector<DrawnGroup> groups;  // in drawing order within each layer
  Table<OpId, std::size_t> group_of;
  Table<OpId, Point> centre;     // within the group's drawing
  std::vector<EdgeBends> bends;  // of edges inside a group
};

Grouping flat_grouping(const Problem& problem);

struct BlockGroupings {
  std::optional<Grouping> blocks = {};  // nullopt for graphs too small to gain from it
  std::optional<Grouping> parts = {};  // nullopt if the names spell nothing smaller than the blocks
};
BlockGroupings block_groupings(const Problem& problem);

// Nullopt for a single model.
std::optional<Grouping> model_grouping(const Problem& problem);

// Nullopt if no two ops are colocated.
std::optional<Grouping> colocation_grouping(const Problem& problem);

// Nullopt if the plan has neither stages nor calls.
std::optional<Grouping> plan_grouping(const Problem& problem, const Plan& plan);

// Nullopt if the plan has no groups.
std::optional<Grouping> planner_grouping(const Problem& problem, const Plan& plan);

}  // namespace placewright
