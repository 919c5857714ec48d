// Why nothing fits: a smallest set of constraints that cannot hold together, and the least memory
// that would do.
//
// The constraints are single statements of the problem: the memory of one space, one pin, one list
// of colocated ops, the kinds that one op is confined to, one missing link, the rules on
// contiguity, calls and peak memory. A conflict is a set of them that no plan satisfies even when
// all others are dropped, while any of them can be dropped to make the rest satisfiable:
// irreducible, though another conflict may have fewer members, and a problem may have several.
//
// Method: QuickXplain (Junker, AAAI 2004), which splits the constraints in halves and asks an
// oracle O(k log(n/k)) times for a conflict of k among n. The oracle is, in this order, the quick
// proofs of planning/feasibility.h, a packing of the groups (CP-SAT; its answer is a proof both
// ways where the plan that follows from the placement is valid), and the planner `auto`. Where it
// does not know within its time, it counts as satisfiable, so that members stay in, and the answer
// says so.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planners/registry.h"
#include "problem/problem.h"
#include "problem/spelling.h"

namespace placewright {

enum class ConstraintKind {
  memory,
  pin,
  colocation,
  support,
  missing_link,
  contiguity,
  calls,
  peak_memory,
};
template <>
inline constexpr auto kSpellings<ConstraintKind> = std::to_array<Spelling<ConstraintKind>>({
    {ConstraintKind::memory, "memory", "of a device, or of a space that several share"},
    {ConstraintKind::pin, "pin", "of an op"},
    {ConstraintKind::colocation, "colocation", "a list of ops"},
    {ConstraintKind::support, "support", "an op runs on some kinds only"},
    {ConstraintKind::missing_link, "missing-link", "from a device, or memory space, to another"},
    {ConstraintKind::contiguity, "contiguity"},
    {ConstraintKind::calls, "calls"},
    {ConstraintKind::peak_memory, "peak-memory"},
});

struct Constraint {
  ConstraintKind kind = ConstraintKind::memory;
  std::size_t index = 0;  // of the op or list; memory, missing link: of the space's first device
  std::size_t other = 0;  // missing link: of the receiving space's first device

  friend bool operator==(const Constraint&, const Constraint&) = default;
};

std::vector<Constraint> constraints_of(const Problem& problem);

// One phrase that names ops and devices.
std::string text_of(const Problem& problem, const Constraint& constraint);

// The problem without the constraints that are not in `kept`.
ProblemDraft with_only(const Problem& problem, std::span<const Constraint> kept);

enum class Verdict { feasible, infeasible, unknown };

// Answers whether a problem has a plan, within a time for each question and one for all.
class FeasibilityOracle {
 public:
  FeasibilityOracle(const Registry& registry, Budget budget);

  Verdict ask(const ProblemDraft& draft);
  // Of the plan that showed the last feasible problem to be so.
  [[nodiscard]] const Placement& placement() const { return placement_; }

 private:
  Verdict ask_planner(const Problem& problem, double seconds);

  const Registry& registry_;
  Control control_;
  Placement placement_;
};

struct Conflict {
  Verdict verdict = Verdict::unknown;  // of the whole problem
  std::vector<Constraint> members;     // where infeasible
  bool minimal = false;                // proved: without any one of them the others can hold
};

Conflict find_conflict(const Problem& problem, FeasibilityOracle& oracle);

struct SpaceNeed {
  std::string name;  // of the space, or of the device that has it alone
  double memory = 0;
  double needed = 0;
};

struct LeastMemory {
  double factor = 0;      // all memory times this would do: a plan shows it
  double not_enough = 0;  // ... times this is too little, proved; 0.1 % less than `factor` or
                          // closer, unless the time was up
  std::vector<SpaceNeed> spaces = {};
};

// Nullopt if no amount of memory would do, or none was found in time.
std::optional<LeastMemory> least_memory(const Problem& problem, FeasibilityOracle& oracle);

}  // namespace placewright
