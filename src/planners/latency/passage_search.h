// A module between two cut nodes, and the ways through it: what `decompose` asks of whoever looks
// for their schedules.
//
// The entry, if there is one, ended at time 0 on a given device; what that device then spends on
// handing out the entry's tensors belongs to the module. The exit, if there is one, runs on a given
// device, and the module ends when it has run, before it hands anything out.
//
// Two answer: ModuleSearch (module_search.h) where every device works for itself, ModuleProgram
// (module_program.h) where devices share resources.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "problem/plan.h"

namespace placewright {

struct ModuleItem {
  enum class Kind : std::uint8_t {
    op,    // `id` runs on `device`
    out,   // host: tensor `id` leaves its producer's device
    send,  // tensor `id` goes to `device` (links: from the producer; host: from host memory)
  };
  Kind kind = Kind::op;
  std::uint8_t device = 0;
  std::uint16_t id = 0;  // in the module
};

// Everything that a module does, in order of start: each as early as those before it allow.
using ModuleItems = std::vector<ModuleItem>;

struct ModuleResult {
  double value = kInfinity;  // of the best schedule below the cutoff
  double lower_bound = 0;    // of all schedules; at most the cutoff or the value
  bool complete = false;  // nothing was let go: no schedule lies below `lower_bound`, and that is
                          // the value or the cutoff
  ModuleItems items;
};

// What is known of a passage, and what is asked.
struct PassageGoal {
  double at_least = 0;        // no schedule is shorter
  double cutoff = kInfinity;  // schedules below this are looked for
  const ModuleItems* known;   // the best schedule so far; empty: none
  std::size_t width = 0;      // how much work, in units of the search
};

struct PassageLimits {
  // Asked now and then with the steps of work since the last time.
  std::function<bool(std::uint64_t)> should_stop;
  std::function<double()> seconds_left;
  std::uint64_t seed = 1;
  const std::atomic<bool>* interruption = nullptr;
};

// One way through a module.
class PassageSearch {
 public:
  PassageSearch() = default;
  PassageSearch(const PassageSearch&) = delete;
  PassageSearch& operator=(const PassageSearch&) = delete;
  virtual ~PassageSearch() = default;

  // A lower bound on all schedules, without search; infinite: there is none.
  [[nodiscard]] virtual double root_bound() = 0;
  // A schedule that is at hand without search; empty: none.
  [[nodiscard]] virtual ModuleItems simple_items() = 0;
  virtual ModuleResult run(const PassageGoal& goal, const PassageLimits& limits) = 0;

  // What a plan does in this module.
  [[nodiscard]] virtual ModuleItems items_of(
      const Plan& plan, const Table<TensorId, std::vector<const Transfer*>>& transfers) const = 0;
  // The end of the last op.
  virtual double value_of(const ModuleItems& items) = 0;
  // Writes devices and times of the items into the plan, from `origin` on; answers the end.
  virtual double replay(const ModuleItems& items, double origin, Plan& plan) = 0;
};

class SearchableModule {
 public:
  SearchableModule() = default;
  SearchableModule(const SearchableModule&) = delete;
  SearchableModule& operator=(const SearchableModule&) = delete;
  virtual ~SearchableModule() = default;

  // All that a schedule depends on: modules with equal signatures have the same schedules, op by
  // op.
  [[nodiscard]] virtual std::string signature() const = 0;
  // No search is wider.
  [[nodiscard]] virtual std::size_t widest() const = 0;
  // Devices by number; 0 where there is no entry or exit. The module must outlive the search.
  [[nodiscard]] virtual std::unique_ptr<PassageSearch> search(std::size_t entry,
                                                              std::size_t exit) const = 0;
};

}  // namespace placewright
