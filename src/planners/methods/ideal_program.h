// The program over ideals: the best way to cut a model's blocks into stages, with down-sets taken
// from a family.
//
//   best(I, u) = least over J in I, class c, replicas r of
//                max(best(J, u - r c), load of I \ J on r devices of class c)
//
// where u says how many devices of each class are used. Only plans below a cutoff T are looked for.
// Then stages have bounded work, so with usage u the work of an ideal lies in a window
//
//   total - (rate of the devices not in u) T  <=  work(I)  <=  (rate of the devices in u) T
//
// and outside of it no label is kept. Ideals are sorted by work: the sources of a label are a range
// of numbers, searched outwards from the balanced split; a source is looked at closely only if its
// own label and the stage's compute are below the best so far, so that most pairs cost one
// comparison. Labels that fewer devices reach as well are dropped, and a label that is `enough` (a
// proven bound) is not improved.
//
// Phased training adds two maxima: labels are then sets of pairs (forward, backward) of which none
// is better than another.
//
// Time: pairs of ideals of neighbouring windows; memory: 16 bytes for each label.
// Exact over the family: with all ideals in the windows it finds the best jointly contiguous plan
// below T or proves that there is none (on links: for the model's lower bounds of loads).
//
// Reference: J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/methods/ideal_family.h"
#include "planners/methods/stage_model.h"

namespace placewright::throughput {

struct SplitStage {
  std::vector<std::uint32_t> blocks;
  std::vector<std::size_t> devices;  // a class for each replica; the first one's overheads count
};

// Stages in pipeline order.
struct Split {
  std::vector<SplitStage> stages;
  double value = kInfinity;
};

struct ProgramResult {
  bool complete = false;  // every split of the family below the cutoff was considered
  std::optional<Split> split;
};

// Ways to use the devices: how many of each class. Too many of them (`kMostUsages`) make the
// program unusable.
inline constexpr double kMostUsages = 4096;
double usage_count(const Problem& problem);

// Where ideals of plans below the cutoff have their work; disjoint, ascending.
std::vector<WorkWindow> work_windows(const StageModel& model, double cutoff);

// The best split below `cutoff`; one of value at most `enough` may be returned in place of a better
// one.
ProgramResult best_split(const IdealFamily& family, double cutoff, double enough, Control& control);

}  // namespace placewright::throughput
