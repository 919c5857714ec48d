// The program over ideals and cores: stages of a contiguous pipeline on sets of cores that are
// nested or disjoint, taken whole, in one memory space.
//
// There the period of a pipeline is the largest sum of loads on a core (docs/semantics.md,
// "throughput"; of stages with replicas that is a bound, and mostly the period too). A label of an
// ideal I says how I can be worked off: which sets are taken, and how much each core has to do,
//
//   (taken + d, load + load(I \ J on d) on the cores of d)    from a label (taken, load) of J inside I
//
// or on r sets of one kind at once, each with 1/r of the load. Only splits below a cutoff T are
// looked for, so cores that nothing can be added to any more are full, whatever they do, and a
// label is left when
//
//   least energy of the rest  >  sum over cores of T - load
//
// where the energy of a stage is load x cores, on sets of the classes C that are left. It is the
// least over all ways to cut the rest into stages below T, however many, with what their cuts cost,
//
//   rest(I, C) = min over K around I, c in C, load(K \ I on c) < T of  cores(c) load(K \ I on c) + rest(K, C)
//
// or, before that is worked out, the blocks' least energies and one receive of each net that I
// cuts. Of cores that can only be taken together the longest load counts for all. Of labels of one
// ideal the one that has more taken and longer loads than another is dropped; states that differ by
// an exchange of like sets are one (core_sets.h).
//
// Where an ideal has more labels than `width`, neighbours are merged: what both have taken, and the
// lesser of the loads. Such a label is at least as good as each of them, so a run that reaches the
// end nowhere still proves that no split is below T (a relaxed decision diagram); a path through it
// need not be a split.
//
// O(pairs of ideals x labels x sets) at worst; most pairs cost one comparison of energies.
//
// Reference: D. Bergman, A. Cire, W.-J. van Hoeve, J. Hooker, "Discrete Optimization with Decision
// Diagrams", INFORMS Journal on Computing 2016 (relaxation by merging).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planners/methods/ideal_family.h"
#include "planners/throughput/core_sets.h"
#include "problem/plan.h"

namespace placewright::throughput {

// Why the program cannot state the problem; empty: it can.
inline constexpr Features kSharedIdealsKnow =
    kCommonAndSharing - Features{Feature::several_spaces, Feature::training};
std::string refuses_shared_ideals(const Problem& problem);

// About how long it takes to make what follows, which is not interrupted.
double seconds_of_shared_ideals(const IdealFamily& family);
// About how much memory it takes. Labels take what the budget allows, and a run ends where they are
// too many.
double bytes_of_shared_ideals(const IdealFamily& family);

// What runs with different cutoffs have in common: who can make a stage together, and what is left
// to do behind each ideal.
class SharedIdeals {
 public:
  // The family and the sets must outlive it.
  SharedIdeals(const IdealFamily& family, const CoreSets& sets);

  // Works out what the rest behind each ideal takes in stages below the cutoff: from now on only
  // splits below it are looked for. False if it was stopped, and nothing has changed.
  bool look_below(double cutoff, Control& control);

  // Sets of one kind that make a stage together.
  struct Crew {
    std::uint64_t places = 0;
    std::size_t first_class = 0;       // whose overheads count
    std::vector<std::size_t> classes;  // of all of them
    double cores = 0;
    [[nodiscard]] int replicas() const { return static_cast<int>(classes.size()); }
  };

  [[nodiscard]] const IdealFamily& family() const { return family_; }
  [[nodiscard]] const CoreSets& sets() const { return sets_; }
  [[nodiscard]] std::span<const Crew> crews() const { return crews_; }
  // By the class of the first one.
  [[nodiscard]] std::span<const std::uint32_t> crews_of_class(std::size_t device_class) const {
    return crews_of_class_[device_class];
  }
  // Energy that the rest takes at least on sets that are not taken.
  [[nodiscard]] double need(std::size_t ideal, std::uint64_t taken) const {
    return needs_[ideal * class_sets_ + classes_left(taken)];
  }
  // Time x cores of the ideal on the class.
  [[nodiscard]] double energy(std::size_t ideal, std::size_t device_class) const {
    return energies_[device_class * family_.size() + ideal];
  }
  // No stage behind the ideal takes less on a set of the class.
  [[nodiscard]] double least_load(std::size_t ideal, std::size_t device_class) const {
    return least_loads_[ideal * class_places_.size() + device_class];
  }

 private:
  void add_crews(std::vector<std::size_t>& members, std::uint64_t atoms, std::size_t from);
  void add_crew(const std::vector<std::size_t>& members, std::size_t first_class);
  void build_needs();
  [[nodiscard]] std::size_t classes_left(std::uint64_t taken) const;
  [[nodiscard]] bool has(std::size_t class_set, std::size_t device_class) const {
    return class_sets_ == 1 || (class_set >> device_class & 1U) != 0;
  }

  const IdealFamily& family_;
  const CoreSets& sets_;
  std::vector<Crew> crews_;
  std::vector<std::vector<std::uint32_t>> crews_of_class_;
  std::vector<std::uint64_t> class_places_;
  std::size_t class_sets_ = 1;              // sets of classes that are told apart
  std::vector<double> needs_;               // ideal x set of classes
  std::vector<double> energies_of_blocks_;  // by ideal: of the blocks behind it alone
  std::vector<double> energies_;
  std::vector<double> least_loads_;
};

struct SharedRun {
  bool complete = false;  // every split of the family below the cutoff was considered
  bool merged = false;    // some labels stand for several
  // Ideals from the empty one to the full one; empty: no split is below the cutoff.
  std::vector<std::size_t> path;
  // Where no label of the path was merged: its stages, in pipeline order.
  std::optional<std::vector<Stage>> stages;
};

SharedRun shared_split(const SharedIdeals& ideals, double cutoff, std::size_t width,
                       Control& control);

}  // namespace placewright::throughput
