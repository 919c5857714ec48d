#include "planners/methods/walk_search.h"

#include <algorithm>
#include <cstdint>

namespace placewright::calls {
namespace {

constexpr std::size_t kStepsBetweenStops = 64;

CallStep step_between(const CallIdeals& ideals, std::size_t from, std::size_t to,
                      int accelerator_class) {
  CallStep step{accelerator_class, {}};
  for (CallGraph::Node node = 0; node < ideals.graph().size(); ++node) {
    if (ideals.holds(to, node) && !ideals.holds(from, node)) step.nodes.push_back(node);
  }
  return step;
}

// Labels at each ideal: ways to get there of which none is as good as another in everything.
class CallLabels {
 public:
  CallLabels(const CallIdeals& ideals, double cutoff, std::size_t limit)
      : ideals_(ideals), cutoff_(cutoff), limit_(limit), at_(ideals.size()) {}

  WalkSearch run(const CallIdeals::Stop& stop) {
    if (!(ideals_.tail(0, 0)[0] < cutoff_)) return {true, std::nullopt};
    labels_.push_back({});
    at_[0].push_back(0);
    CallIdeals::Passage passage;
    for (std::size_t ideal = 0; ideal + 1 < ideals_.size(); ++ideal) {
      if (at_[ideal].empty()) continue;
      if (labels_.size() > limit_ || stop()) return {};
      std::uint32_t passed_to = 0;
      for (const CallIdeals::Step& step : ideals_.steps_from(ideal)) {
        if (passed_to != step.target) ideals_.pass(ideal, step.target, passage);
        passed_to = step.target;
        for (const std::uint32_t label : at_[ideal]) extend(label, step, passage);
      }
      // Labels of an ideal are extended once; their ready times are not needed again.
      at_[ideal].shrink_to_fit();
    }
    return {true, best_walk()};
  }

 private:
  struct Label {
    std::uint32_t ideal = 0;
    std::uint32_t use = 0;
    std::uint32_t parent = 0;
    int accelerator_class = CallIdeals::Step::kHost;
    double end = 0;  // of the sinks so far
    std::size_t first_ready = 0;
  };

  void extend(std::uint32_t parent, const CallIdeals::Step& step,
              const CallIdeals::Passage& passage) {
    const Label& from = labels_[parent];
    const auto use = ideals_.next_use(from.use, step.accelerator_class);
    if (!use) return;
    const double* tail = ideals_.tail(step.target, *use);
    if (!(tail[0] < cutoff_)) return;
    double start = 0;
    for (std::size_t i = 0; i < passage.read.size(); ++i) {
      if (passage.read[i] != 0) start = std::max(start, ready_[from.first_ready + i]);
    }
    const double end = start + step.duration;
    if (!(end < cutoff_)) return;
    ready_now_.resize(passage.origin.size());
    for (std::size_t j = 0; j < passage.origin.size(); ++j) {
      const std::uint32_t origin = passage.origin[j];
      ready_now_[j] = origin == CallIdeals::kMade ? end : ready_[from.first_ready + origin];
      if (!(ready_now_[j] + tail[j + 1] < cutoff_)) return;
    }
    // A step that makes nothing that leaves is a sink; one that does ends before its readers do.
    const bool ends_here =
        std::ranges::find(passage.origin, CallIdeals::kMade) == passage.origin.end();
    const Label label{step.target,
                      static_cast<std::uint32_t>(*use),
                      parent,
                      step.accelerator_class,
                      ends_here ? std::max(from.end, end) : from.end,
                      ready_.size()};
    insert(label);
  }

  [[nodiscard]] bool as_good(const Label& a, const double* a_ready, const Label& b,
                             const double* b_ready) const {
    if (a.end > b.end || !ideals_.no_more_calls(a.use, b.use)) return false;
    const std::size_t width = ready_now_.size();
    for (std::size_t i = 0; i < width; ++i) {
      if (a_ready[i] > b_ready[i]) return false;
    }
    return true;
  }

  void insert(const Label& label) {
    std::vector<std::uint32_t>& there = at_[label.ideal];
    for (const std::uint32_t other : there) {
      const Label& known = labels_[other];
      if (as_good(known, ready_.data() + known.first_ready, label, ready_now_.data())) return;
    }
    std::erase_if(there, [&](std::uint32_t other) {
      const Label& known = labels_[other];
      return as_good(label, ready_now_.data(), known, ready_.data() + known.first_ready);
    });
    there.push_back(static_cast<std::uint32_t>(labels_.size()));
    labels_.push_back(label);
    ready_.insert(ready_.end(), ready_now_.begin(), ready_now_.end());
  }

  [[nodiscard]] std::optional<CallWalk> best_walk() const {
    const std::vector<std::uint32_t>& last = at_.back();
    if (last.empty()) return std::nullopt;
    std::uint32_t label =
        *std::ranges::min_element(last, {}, [&](std::uint32_t one) { return labels_[one].end; });
    CallWalk walk;
    walk.value = labels_[label].end;
    for (; labels_[label].ideal != 0; label = labels_[label].parent) {
      const std::size_t from = labels_[labels_[label].parent].ideal;
      walk.steps.push_back(
          step_between(ideals_, from, labels_[label].ideal, labels_[label].accelerator_class));
    }
    std::ranges::reverse(walk.steps);
    return walk;
  }

  const CallIdeals& ideals_;
  double cutoff_;
  std::size_t limit_;
  std::vector<std::vector<std::uint32_t>> at_;
  std::vector<Label> labels_;
  std::vector<double> ready_;
  std::vector<double> ready_now_;
};

}  // namespace

WalkSearch search_walks(const CallIdeals& ideals, double cutoff, std::size_t label_limit,
                        const CallIdeals::Stop& stop) {
  if (ideals.size() == 1) return {true, cutoff > 0 ? std::optional(CallWalk{0, {}}) : std::nullopt};
  return CallLabels(ideals, cutoff, label_limit).run(stop);
}

std::optional<CallWalk> walk_of_least_sum(const CallIdeals& ideals, const CallIdeals::Stop& stop) {
  struct Best {
    double sum = kInfinity;
    std::uint32_t from = 0;
    std::uint32_t use = 0;
    int accelerator_class = CallIdeals::Step::kHost;
  };
  const std::size_t uses = ideals.use_count();
  std::vector<Best> best(ideals.size() * uses);
  best[0].sum = 0;
  for (std::size_t ideal = 0; ideal + 1 < ideals.size(); ++ideal) {
    if (ideal % kStepsBetweenStops == 0 && stop()) return std::nullopt;
    for (const CallIdeals::Step& step : ideals.steps_from(ideal)) {
      for (std::size_t use = 0; use < uses; ++use) {
        const double sum = best[ideal * uses + use].sum + step.duration;
        if (sum == kInfinity) continue;
        const auto next = ideals.next_use(use, step.accelerator_class);
        if (!next) continue;
        Best& there = best[step.target * uses + *next];
        if (sum < there.sum) {
          there = {sum, static_cast<std::uint32_t>(ideal), static_cast<std::uint32_t>(use),
                   step.accelerator_class};
        }
      }
    }
  }
  const auto last = best.end() - static_cast<std::ptrdiff_t>(uses);
  const auto chosen = std::ranges::min_element(last, best.end(), {}, &Best::sum);
  if (chosen->sum == kInfinity) return std::nullopt;
  CallWalk walk{chosen->sum, {}};
  std::size_t ideal = ideals.size() - 1;
  for (auto at = *chosen; ideal != 0; at = best[ideal * uses + at.use]) {
    walk.steps.push_back(step_between(ideals, at.from, ideal, at.accelerator_class));
    ideal = at.from;
  }
  std::ranges::reverse(walk.steps);
  return walk;
}

}  // namespace placewright::calls
