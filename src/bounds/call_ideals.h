// CallIdeals: plans of a CallGraph as walks over its down-sets ("ideals").
//
// The calls and host ops of a plan, in an order in which they can run, are steps I -> J between
// ideals: J \ I is one host op, or the set of one call. What comes after I depends on how many
// calls are used and on when each tensor is ready that leaves I. For each ideal, use of calls and
// tensor t that leaves the ideal, the least time from t being ready to the end of everything, over
// all ways to go on, is
//
//   tail(I, u, t) = min over steps I -> J of the larger of
//     duration + max of the tails of what the step makes    [if the step reads t]
//     tail(J, u', t)                                        [if something after J reads t]
//
// each tensor by itself, so the tails of two tensors may come from different plans: a lower bound
// (a state-space relaxation), and exact on chains. Calls pay for their border, memory limits every
// call, and there are only so many calls: what the critical path leaves out. tail(empty) is the
// bound of the whole. O(pairs of ideals x uses x tensors that leave).
//
// Planners search for the walks themselves (planners/calls/walk_search.h).
//
// Pairs of ideals are found by comparing bit sets, within the memory of a call; nothing is stored
// for a pair. A use of calls counts them by class; where there would be too many uses, calls are
// not counted (a relaxation).

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bounds/call_graph.h"

namespace placewright {

class CallIdeals {
 public:
  using Stop = std::function<bool()>;
  using Node = CallGraph::Node;

  // Nullopt if there are more than `limit` ideals, or when asked to stop.
  static std::optional<CallIdeals> all_of(CallGraph graph, std::size_t limit, const Stop& stop);
  // Only the prefixes of some topological orders, about `most_cuts` of each: no bounds, but walks.
  // Nullopt when asked to stop.
  static std::optional<CallIdeals> prefixes(CallGraph graph,
                                            std::span<const std::vector<Node>> orders,
                                            std::size_t most_cuts, const Stop& stop);

  [[nodiscard]] const CallGraph& graph() const { return graph_; }
  [[nodiscard]] std::size_t size() const { return ideals_.size(); }
  // Whether the best walk is a best plan of the problem.
  [[nodiscard]] bool exact() const { return !graph_.relaxed && counted_ && whole_; }

  // Computes the tails, once, and answers the bound of the whole: infinite when the graph has no
  // plan, nullopt when asked to stop.
  std::optional<double> bound(const Stop& stop);

  // Ideals are numbered by size: 0 is empty, the last one is everything.
  [[nodiscard]] bool holds(std::size_t ideal, Node node) const {
    return (words_[ideal * words_per_ideal_ + node / 64] >> (node % 64) & 1U) != 0;
  }

  // To a larger ideal, by a host op or a call of a class.
  struct Step {
    static constexpr int kHost = -1;
    std::uint32_t target = 0;
    int accelerator_class = kHost;
    double duration = 0;
  };
  // In ascending order of target.
  [[nodiscard]] std::vector<Step> steps_from(std::size_t ideal) const;

  // What a step does to the tensors that leave. For each tensor that leaves the target its position
  // among those that leave the origin, or kMade; for each that leaves the origin its position among
  // those that leave the target, or kGone, and whether the step reads it.
  struct Passage {
    std::vector<std::uint32_t> origin;
    std::vector<std::uint32_t> kept;
    std::vector<char> read;
  };
  static constexpr std::uint32_t kMade = 0xffffffff;
  static constexpr std::uint32_t kGone = 0xffffffff;
  // Into a passage that keeps its memory from pair to pair.
  void pass(std::size_t from, std::size_t to, Passage& passage) const;

  // Uses: how many calls of each class a walk has had, as one number. 0: none.
  [[nodiscard]] std::size_t use_count() const { return uses_; }
  // The use after a call of the class; nullopt if there is none left.
  [[nodiscard]] std::optional<std::size_t> next_use(std::size_t use, int accelerator_class) const {
    if (accelerator_class == Step::kHost || !counted_) return use;
    const std::uint32_t next =
        next_uses_[static_cast<std::size_t>(accelerator_class) * uses_ + use];
    return next == kNoUse ? std::nullopt : std::optional<std::size_t>(next);
  }
  // Whether use `a` has no more calls of any class than use `b`.
  [[nodiscard]] bool no_more_calls(std::size_t a, std::size_t b) const;

  // After `bound`: the tails at an ideal and use. Position 0 stands for time zero, which every step
  // waits for; 1 + i for the i-th tensor that leaves.
  [[nodiscard]] const double* tail(std::size_t ideal, std::size_t use) const {
    return tails_.data() + ideals_[ideal].first_tail + use * (leaving(ideal).size() + 1);
  }

 private:
  static constexpr std::uint32_t kNoUse = 0xffffffff;

  struct Ideal {
    std::uint32_t nodes = 0;          // how many
    std::uint32_t first_leaving = 0;  // into leaving_
    std::uint32_t end_leaving = 0;
    std::size_t first_tail = 0;  // into tails_: uses x (1 + leaving)
    double memory = 0;
    std::vector<std::uint32_t> split_groups;
  };

  explicit CallIdeals(CallGraph graph);
  bool enumerate(std::size_t limit, const Stop& stop);
  void adopt(std::span<const std::uint64_t> found);
  bool describe(const Stop& stop);
  void lay_out_uses();
  [[nodiscard]] std::span<const std::uint64_t> bits(std::size_t ideal) const {
    return {words_.data() + ideal * words_per_ideal_, words_per_ideal_};
  }
  [[nodiscard]] bool includes(std::size_t outer, std::size_t inner) const;
  [[nodiscard]] std::span<const std::uint32_t> leaving(std::size_t ideal) const {
    return {leaving_.data() + ideals_[ideal].first_leaving,
            ideals_[ideal].end_leaving - ideals_[ideal].first_leaving};
  }
  [[nodiscard]] bool keeps_groups(std::size_t inner, std::size_t outer) const;
  [[nodiscard]] double class_time(std::size_t ideal, std::size_t one) const {
    return class_times_[ideal * graph_.classes.size() + one];
  }
  [[nodiscard]] std::uint32_t forbidden(std::size_t ideal, std::size_t one) const {
    return forbidden_[ideal * graph_.classes.size() + one];
  }
  void improve_tails(std::size_t from, const Step& step, const Passage& passage);

  CallGraph graph_;
  std::size_t words_per_ideal_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<Ideal> ideals_;
  std::vector<std::uint32_t> leaving_;
  std::vector<double> class_times_;
  std::vector<std::uint32_t> forbidden_;
  std::vector<std::size_t> strides_;  // of a class in the number of a use
  std::size_t uses_ = 1;
  std::vector<std::uint32_t> next_uses_;  // by class and use: asked for every pair, so no division
  bool counted_ = true;
  bool whole_ = true;  // all ideals
  double memory_tolerance_ = 0;
  std::vector<double> tails_;
};

// All ideals of the problem's graph, with as few ops left out as keeps them within `limit`. Asked
// to stop, it leaves out all: one ideal, and no bound.
CallIdeals finest_ideals(const Problem& problem, std::size_t limit, int calls_per_device,
                         const CallIdeals::Stop& stop);

// All ideals of the heaviest ops, as many of them as keep the ideals within `limit`: for wide
// graphs.
CallIdeals heaviest_ideals(const Problem& problem, std::size_t limit, int calls_per_device,
                           const CallIdeals::Stop& stop);

}  // namespace placewright
