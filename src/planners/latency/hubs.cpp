// Bounds by deletion, and a plan from their parts (`latency`).
//
// Few ops may keep a graph from splitting at cut nodes: the branch of a decoder that waits for its
// encoder, the projections that every layer reads. Without them (coarsen/deletion.h) there are
// hubs, and as in `decompose`
//
//   latency >= min over devices d0, d1, ... of hubs of the sum over segments of t(s, d(s-1), d(s)),
//
// where t may be any lower bound on a segment. At first it is that of paths and work
// (bounds/segments.h); then, on the shortest path, segment by segment, that of a linear program for
// placement, load, ports and paths (bounds/segment_program.h), until all of the shortest path is
// known: the bound rises with each.
//
// The plan: each segment of that path by local search with its hubs where the path has them, the
// ops left out by HEFT around the rest, and then local search over the whole. Programs take half of
// the time at most. Nothing is proved beyond the bound, which ignores memory, colocation across
// hubs, shared resources and cut overheads; plans keep all of them.

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "bounds/segment_program.h"
#include "bounds/segments.h"
#include "coarsen/cut_nodes.h"
#include "coarsen/deletion.h"
#include "planners/latency/latency.h"
#include "planners/methods/quick_plans.h"
#include "planners/methods/sequence_search.h"
#include "problem/part.h"

namespace placewright {
namespace {

constexpr double kProgramShare = 0.5;          // of the time
constexpr double kSegmentShare = 0.4;          // of what is left then
constexpr double kProgramGain = 0.03;          // of a program; after less it is not asked again
constexpr std::uint64_t kMoves = 400;          // of local search in a segment, for each op
constexpr std::size_t kMostVariables = 30000;  // of a program; about ten seconds
constexpr double kSecondsPerPassage = 6e-9;    // of an edge between devices, through a segment

// A segment and what is known of its passages, by device of entry and exit.
struct Segment {
  CutSegment ops;
  std::size_t entries;
  std::size_t exits;
  std::vector<double> lower;
  std::vector<char> final;  // nothing more to learn

  [[nodiscard]] std::size_t at(std::size_t entry, std::size_t exit) const {
    return entry * exits + exit;
  }
};

class Hubs {
 public:
  Hubs(const Problem& problem, Control& control)
      : problem_(problem), control_(control), until_(control.remaining() * (1 - kProgramShare)) {}

  Answer run() {
    start();
    choose_remainder();
    if (rest_ && best_) {
      raise_bound();
      plan_along_path();
    }
    Answer answer = improve();
    answer.certificate.lower_bound = safe_sum(std::min(lower_bound_, answer.value()));
    if (rest_) {
      answer.certificate.method =
          fmt::format("linear programs between {} hubs, {} ops left out", segments_.size() - 1,
                      problem_.op_count() - rest_->problem.op_count());
    }
    return answer;
  }

 private:
  using Distances = std::vector<std::vector<double>>;  // boundary x device

  void start() {
    if (control_.start != nullptr) best_ = *control_.start;
    if (!best_) take(answer_of(earliest_end_list, problem_, control_.remaining()));
  }

  static Answer search_freely(const Problem& problem, Control& control) {
    return search_sequences(problem, control);
  }

  // A method on a problem, within so many seconds.
  Answer answer_of(QuickPlan* planner, const Problem& problem, double seconds,
                   std::uint64_t steps = std::numeric_limits<std::uint64_t>::max(),
                   const Plan* start = nullptr) {
    Budget budget = control_.budget();
    budget.seconds = std::min(seconds, control_.remaining());
    budget.steps = std::min(budget.steps, steps);
    Control part("hubs", budget, control_.interruption());
    part.start = start;
    return planner(problem, part);
  }

  void take(Answer answer) {
    if (!answer.plan) {
      if (!best_) reason_ = answer.reason;
      return;
    }
    if (best_ && best_->value <= answer.plan->value) return;
    best_ = std::move(answer.plan);
    control_.report(*best_, lower_bound_);
  }

  // The one with the best bound by paths and work; none where that takes longer than there is time.
  void choose_remainder() {
    const double devices = static_cast<double>(problem_.device_count());
    const double edges = static_cast<double>(problem_.edge_count() + problem_.op_count());
    const double seconds = kSecondsPerPassage * edges * devices * devices * devices;
    if (!control_.cannot_afford(seconds, 0).empty()) return;
    for (Remainder& rest : remainders(problem_)) {
      const double bound = segment_bound(rest.problem);
      if (rest_ && bound <= lower_bound_) continue;
      lower_bound_ = bound;
      rest_ = std::move(rest);
    }
    if (!rest_) return;
    for (CutSegment& ops : cut_segments(rest_->problem)) {
      Segment segment{std::move(ops), 1, 1, {}, {}};
      if (segment.ops.entry.valid()) segment.entries = problem_.device_count();
      if (segment.ops.exit.valid()) segment.exits = problem_.device_count();
      segment.lower = segment_times(rest_->problem, segment.ops);
      const bool known = segment.ops.ops.size() == 1 ||  // paths say all
                         segment_program_size(rest_->problem, segment.ops) > kMostVariables;
      segment.final.assign(segment.lower.size(), known ? 1 : 0);
      segments_.push_back(std::move(segment));
    }
  }

  // From the beginning to each boundary, or from there to the end.
  [[nodiscard]] Distances from_begin() const {
    Distances distance(1, {0.0});
    for (const Segment& segment : segments_) {
      std::vector<double> next(segment.exits, kInfinity);
      for (std::size_t entry = 0; entry < segment.entries; ++entry) {
        for (std::size_t exit = 0; exit < segment.exits; ++exit) {
          next[exit] =
              std::min(next[exit], distance.back()[entry] + segment.lower[segment.at(entry, exit)]);
        }
      }
      distance.push_back(std::move(next));
    }
    return distance;
  }
  [[nodiscard]] Distances to_end() const {
    Distances distance(segments_.size() + 1);
    distance.back().assign(segments_.back().exits, 0.0);
    for (std::size_t i = segments_.size(); i-- > 0;) {
      const Segment& segment = segments_[i];
      distance[i].assign(segment.entries, kInfinity);
      for (std::size_t entry = 0; entry < segment.entries; ++entry) {
        for (std::size_t exit = 0; exit < segment.exits; ++exit) {
          distance[i][entry] = std::min(
              distance[i][entry], segment.lower[segment.at(entry, exit)] + distance[i + 1][exit]);
        }
      }
    }
    return distance;
  }

  // The exits of the shortest path.
  [[nodiscard]] std::vector<std::size_t> shortest_path(const Distances& to_end) const {
    std::vector<std::size_t> exits;
    std::size_t entry = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      std::size_t best = 0;
      double least = kInfinity;
      for (std::size_t exit = 0; exit < segments_[i].exits; ++exit) {
        const double rest = segments_[i].lower[segments_[i].at(entry, exit)] + to_end[i + 1][exit];
        if (rest >= least) continue;
        least = rest;
        best = exit;
      }
      exits.push_back(best);
      entry = best;
    }
    return exits;
  }

  // Programs for what the shortest path goes through, until it goes through nothing else.
  void raise_bound() {
    while (true) {
      const Distances rest = to_end();
      lower_bound_ = std::max(lower_bound_, std::min(rest[0][0], best_->value));
      control_.report(best_->value, lower_bound_);
      if (lower_bound_ >= best_->value) return;
      const Distances before = from_begin();
      path_ = shortest_path(rest);
      bool learned = false;
      std::size_t entry = 0;
      for (std::size_t i = 0; i < segments_.size(); ++i) {
        const std::size_t exit = path_[i];
        if (segments_[i].final[segments_[i].at(entry, exit)] == 0) {
          if (control_.remaining() < until_) return;
          const double others = before[i][entry] + rest[i + 1][exit];
          if (!ask_program(segments_[i], entry, exit, best_->value - others)) return;
          learned = true;
        }
        entry = exit;
      }
      if (!learned) return;
    }
  }

  // False when there is no time left.
  bool ask_program(Segment& segment, std::size_t entry, std::size_t exit, double enough) {
    if (control_.should_stop(segment_program_size(rest_->problem, segment.ops))) return false;
    const SegmentPaths paths(rest_->problem, segment.ops);
    double& lower = segment.lower[segment.at(entry, exit)];
    segment.final[segment.at(entry, exit)] = 1;
    if (enough <= lower) return true;
    // Windows say more when more is known.
    for (double known = 0; lower > known * (1 + kProgramGain) && lower < enough;) {
      known = lower;
      lower = std::max(
          lower, segment_program_bound(
                     rest_->problem, paths, {entry, exit, known, enough},
                     {.most_seconds = control_.remaining(), .stop = control_.interruption()}));
    }
    return true;
  }

  // The segments one by one, and the ops left out around them.
  void plan_along_path() {
    const double seconds = control_.remaining() * kSegmentShare;
    ProblemDraft pinned = problem_.draft();
    std::size_t entry = 0;
    for (std::size_t i = 0; i < path_.size(); ++i) {
      if (control_.should_stop()) return;
      const CutSegment& ops = segments_[i].ops;
      const Problem part = problem_of(ops, DeviceId{entry}, DeviceId{path_[i]});
      const double share =
          static_cast<double>(part.op_count()) / static_cast<double>(problem_.op_count());
      const Answer found = answer_of(ops.ops.size() > 1 ? search_freely : earliest_end_list, part,
                                     seconds * share, kMoves * part.op_count());
      if (!found.plan) return;
      for (std::size_t j = 0; j < ops.ops.size(); ++j) {
        const OpId original = rest_->original[ops.ops[j].index()];
        pin(pinned, original, found.plan->placement[OpId{j}]);
      }
      entry = path_[i];
    }
    take(answer_of(earliest_end_list, Problem(std::move(pinned)), control_.remaining()));
  }

  // One op pins its group, where the group may be there.
  void pin(ProblemDraft& draft, OpId op, DeviceId device) const {
    const GroupId group = problem_.group(op);
    const bool pinned = std::ranges::any_of(problem_.group_ops(group), [&](OpId other) {
      return draft.ops[other.index()].pinned_to.valid();
    });
    if (!pinned && problem_.group_allowed(group, device)) draft.ops[op.index()].pinned_to = device;
  }

  // A segment as a problem of its own: its ops, then its entry.
  [[nodiscard]] Problem problem_of(const CutSegment& segment, DeviceId entry, DeviceId exit) const {
    std::vector<OpId> ops = segment.ops;
    if (segment.entry.valid()) ops.push_back(segment.entry);
    ProblemDraft draft = part_of(rest_->problem, ops);
    draft.colocated.clear();
    draft.shared_weights.clear();
    if (segment.exit.valid()) draft.ops[segment.ops.size() - 1].pinned_to = exit;
    if (segment.entry.valid()) draft.ops.back().pinned_to = entry;
    return Problem(std::move(draft));
  }

  Answer improve() {
    Answer answer;
    if (best_ && lower_bound_ < best_->value && !control_.should_stop()) {
      take(answer_of(search_freely, problem_, control_.remaining(), kAllSteps, &*best_));
    }
    answer.plan = std::move(best_);
    answer.reason = reason_;
    return answer;
  }

  static constexpr std::uint64_t kAllSteps = std::numeric_limits<std::uint64_t>::max();

  const Problem& problem_;
  Control& control_;
  double until_;  // how much time must be left for a program to begin
  std::optional<Plan> best_;
  std::optional<Remainder> rest_;
  std::vector<Segment> segments_;
  std::vector<std::size_t> path_;  // exits
  double lower_bound_ = 0;
  std::string reason_;
};

std::string refuses(const Problem& problem) {
  if (remainders(problem).empty()) {
    return "leaving ops out gives no more cut nodes, or it has several models, over 4000 ops "
           "or over 64 devices";
  }
  return {};
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return Hubs(problem, control).run();
}

}  // namespace

PlannerEntry hubs() {
  return PlannerEntry{
      .name = "hubs",
      .summary = "a rising bound without the ops that keep the graph from splitting",
      .objectives = {Objective::latency},
      .effort = Effort::anytime,
      .share = 8,
      .knows = kCommonAndSharing,
      .refuses = refuses,
      .plan = plan};
}

}  // namespace placewright
