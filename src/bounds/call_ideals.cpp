#include "bounds/call_ideals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "bounds/rounding.h"
#include "evaluate/memory.h"

namespace placewright {
namespace {

constexpr std::size_t kMostUses = 40;
constexpr std::size_t kStepsBetweenStops = 64;

std::size_t groups_of(const Problem& problem, const Table<OpId, char>& keep) {
  const auto kept = [&](OpId op) { return keep[op] != 0; };
  return static_cast<std::size_t>(std::ranges::count_if(problem.groups(), [&](GroupId group) {
    return std::ranges::any_of(problem.group_ops(group), kept);
  }));
}

}  // namespace

CallIdeals::CallIdeals(CallGraph graph)
    : graph_(std::move(graph)),
      words_per_ideal_(std::max<std::size_t>(1, (graph_.size() + 63) / 64)) {
  memory_tolerance_ =
      kSumRounding * std::accumulate(graph_.memory.begin(), graph_.memory.end(), 0.0);
}

std::optional<CallIdeals> CallIdeals::all_of(CallGraph graph, std::size_t limit, const Stop& stop) {
  CallIdeals ideals(std::move(graph));
  if (!ideals.enumerate(limit, stop) || !ideals.describe(stop)) return std::nullopt;
  ideals.lay_out_uses();
  return ideals;
}

std::optional<CallIdeals> CallIdeals::prefixes(CallGraph graph,
                                               std::span<const std::vector<Node>> orders,
                                               std::size_t most_cuts, const Stop& stop) {
  CallIdeals ideals(std::move(graph));
  ideals.whole_ = false;
  const std::size_t stride = ideals.graph_.size() / most_cuts + 1;
  std::vector<std::uint64_t> found;
  for (const std::vector<Node>& order : orders) {
    std::vector<std::uint64_t> current(ideals.words_per_ideal_, 0);
    found.insert(found.end(), current.begin(), current.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      current[order[i] / 64] |= std::uint64_t{1} << (order[i] % 64);
      if ((i + 1) % stride != 0 && i + 1 < order.size()) continue;
      found.insert(found.end(), current.begin(), current.end());
    }
  }
  ideals.adopt(found);
  if (!ideals.describe(stop)) return std::nullopt;
  ideals.lay_out_uses();
  return ideals;
}

// Nodes are in topological order, so an ideal's nodes with numbers up to any x are an ideal too:
// adding nodes in ascending order meets every ideal once.
bool CallIdeals::enumerate(std::size_t limit, const Stop& stop) {
  const std::size_t count = graph_.size();
  if (count >= limit) return false;  // it has more ideals than nodes
  std::vector<std::vector<Node>> before(count);
  for (const CallGraph::Net& net : graph_.nets) {
    for (const Node consumer : net.consumers) before[consumer].push_back(net.producer);
  }
  std::vector<std::uint64_t> found(words_per_ideal_, 0);
  std::vector<std::uint32_t> last{0};  // the next node that may be added
  std::vector<std::uint64_t> current(words_per_ideal_);
  for (std::size_t ideal = 0; ideal < last.size(); ++ideal) {
    if (ideal % kStepsBetweenStops == 0 && stop()) return false;
    std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(ideal * words_per_ideal_),
                words_per_ideal_, current.begin());
    const auto has = [&](Node node) { return (current[node / 64] >> (node % 64) & 1U) != 0; };
    for (std::uint32_t node = last[ideal]; node < count; ++node) {
      if (!std::ranges::all_of(before[node], has)) continue;
      if (last.size() == limit) return false;
      found.insert(found.end(), current.begin(), current.end());
      found[found.size() - words_per_ideal_ + node / 64] |= std::uint64_t{1} << (node % 64);
      last.push_back(node + 1);
    }
  }
  adopt(found);
  return true;
}

// Sorts by size, then by bits, and drops what is there twice.
void CallIdeals::adopt(std::span<const std::uint64_t> found) {
  std::vector<std::pair<std::uint32_t, std::span<const std::uint64_t>>> order;
  for (std::size_t first = 0; first < found.size(); first += words_per_ideal_) {
    const auto one = found.subspan(first, words_per_ideal_);
    std::uint32_t nodes = 0;
    for (const std::uint64_t word : one) nodes += static_cast<std::uint32_t>(std::popcount(word));
    order.emplace_back(nodes, one);
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first
                              : std::ranges::lexicographical_compare(a.second, b.second);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && std::ranges::equal(order[i].second, order[i - 1].second)) continue;
    ideals_.push_back({.nodes = order[i].first});
    words_.insert(words_.end(), order[i].second.begin(), order[i].second.end());
  }
}

bool CallIdeals::describe(const Stop& stop) {
  const std::size_t classes = graph_.classes.size();
  class_times_.assign(size() * classes, 0);
  forbidden_.assign(size() * classes, 0);
  for (std::size_t ideal = 0; ideal < size(); ++ideal) {
    if (ideal % kStepsBetweenStops == 0 && stop()) return false;
    Ideal& record = ideals_[ideal];
    for (Node node = 0; node < graph_.size(); ++node) {
      if (!holds(ideal, node)) continue;
      record.memory += graph_.memory[node];
      for (std::size_t one = 0; one < classes; ++one) {
        const double time = graph_.classes[one].time[node];
        if (time < kInfinity) {
          class_times_[ideal * classes + one] += time;
        } else {
          ++forbidden_[ideal * classes + one];
        }
      }
    }
    record.first_leaving = static_cast<std::uint32_t>(leaving_.size());
    for (std::uint32_t net = 0; net < graph_.nets.size(); ++net) {
      const auto outside = [&](Node node) { return !holds(ideal, node); };
      if (holds(ideal, graph_.nets[net].producer) &&
          std::ranges::any_of(graph_.nets[net].consumers, outside)) {
        leaving_.push_back(net);
      }
    }
    record.end_leaving = static_cast<std::uint32_t>(leaving_.size());
    for (std::uint32_t group = 0; group < graph_.groups.size(); ++group) {
      const auto& members = graph_.groups[group];
      const auto inside =
          std::ranges::count_if(members, [&](Node node) { return holds(ideal, node); });
      if (inside > 0 && static_cast<std::size_t>(inside) < members.size()) {
        record.split_groups.push_back(group);
      }
    }
  }
  return true;
}

void CallIdeals::lay_out_uses() {
  double uses = 1;
  for (const auto& one : graph_.classes) {
    uses *= static_cast<double>(std::min(one.calls, graph_.size()) + 1);
  }
  counted_ = uses <= static_cast<double>(kMostUses);
  if (counted_) {
    for (const auto& one : graph_.classes) {
      strides_.push_back(uses_);
      uses_ *= std::min(one.calls, graph_.size()) + 1;
    }
    for (std::size_t one = 0; one < strides_.size(); ++one) {
      const std::size_t most = std::min(graph_.classes[one].calls, graph_.size());
      for (std::size_t use = 0; use < uses_; ++use) {
        const bool none_left = use / strides_[one] % (most + 1) == most;
        next_uses_.push_back(none_left ? kNoUse : static_cast<std::uint32_t>(use + strides_[one]));
      }
    }
  }
  std::size_t offset = 0;
  for (std::size_t ideal = 0; ideal < size(); ++ideal) {
    ideals_[ideal].first_tail = offset;
    offset += uses_ * (leaving(ideal).size() + 1);
  }
}

bool CallIdeals::no_more_calls(std::size_t a, std::size_t b) const {
  if (!counted_ || a == b) return true;
  for (std::size_t one = 0; one < strides_.size(); ++one) {
    const std::size_t base = std::min(graph_.classes[one].calls, graph_.size()) + 1;
    if (a / strides_[one] % base > b / strides_[one] % base) return false;
  }
  return true;
}

bool CallIdeals::includes(std::size_t outer, std::size_t inner) const {
  const std::uint64_t* large = words_.data() + outer * words_per_ideal_;
  const std::uint64_t* small = words_.data() + inner * words_per_ideal_;
  for (std::size_t word = 0; word < words_per_ideal_; ++word) {
    if ((small[word] & ~large[word]) != 0) return false;
  }
  return true;
}

// A call has the whole of a group or nothing of it.
bool CallIdeals::keeps_groups(std::size_t inner, std::size_t outer) const {
  const auto in_step = [&](Node node) { return holds(outer, node) && !holds(inner, node); };
  const auto touched = [&](std::uint32_t group) {
    return std::ranges::any_of(graph_.groups[group], in_step);
  };
  return std::ranges::none_of(ideals_[inner].split_groups, touched) &&
         std::ranges::none_of(ideals_[outer].split_groups, touched);
}

std::vector<CallIdeals::Step> CallIdeals::steps_from(std::size_t from) const {
  std::vector<Step> steps;
  const std::size_t classes = graph_.classes.size();
  std::vector<double> moved(classes);  // by class: what the call takes to read and to send
  double largest_memory = 0;
  for (const auto& one : graph_.classes) largest_memory = std::max(largest_memory, one.memory);
  const auto fits = [&](double bytes, double memory) {
    return bytes <= memory * (1 + kMemoryTolerance) + memory_tolerance_;
  };
  for (std::size_t to = from + 1; to < size(); ++to) {
    const bool single = ideals_[to].nodes == ideals_[from].nodes + 1;
    const double bytes = ideals_[to].memory - ideals_[from].memory;
    if ((!single && !fits(bytes, largest_memory)) || ideals_[to].nodes == ideals_[from].nodes ||
        !includes(to, from)) {
      continue;
    }
    if (single) {
      Node node = 0;
      while (!holds(to, node) || holds(from, node)) ++node;
      if (graph_.host_time[node] < kInfinity) {
        steps.push_back({static_cast<std::uint32_t>(to), Step::kHost, graph_.host_time[node]});
      }
    }
    if (!fits(bytes, largest_memory) || !keeps_groups(from, to)) continue;
    std::ranges::fill(moved, 0.0);
    for (const std::uint32_t net : leaving(from)) {
      const auto inside = [&](Node node) { return holds(to, node) && !holds(from, node); };
      if (!graph_.nets[net].moves) continue;
      if (!std::ranges::any_of(graph_.nets[net].consumers, inside)) continue;
      for (std::size_t one = 0; one < classes; ++one) moved[one] += graph_.classes[one].in[net];
    }
    for (const std::uint32_t net : leaving(to)) {
      if (!graph_.nets[net].moves || holds(from, graph_.nets[net].producer)) continue;
      for (std::size_t one = 0; one < classes; ++one) moved[one] += graph_.classes[one].out[net];
    }
    for (std::size_t one = 0; one < classes; ++one) {
      if (forbidden(to, one) != forbidden(from, one)) continue;
      if (!fits(bytes, graph_.classes[one].memory)) continue;
      steps.push_back({static_cast<std::uint32_t>(to), static_cast<int>(one),
                       class_time(to, one) - class_time(from, one) + moved[one]});
    }
  }
  return steps;
}

void CallIdeals::pass(std::size_t from, std::size_t to, Passage& passage) const {
  const auto before = leaving(from);
  const auto after = leaving(to);
  passage.read.assign(before.size(), 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto inside = [&](Node node) { return holds(to, node) && !holds(from, node); };
    passage.read[i] = std::ranges::any_of(graph_.nets[before[i]].consumers, inside) ? 1 : 0;
  }
  // Both lists ascend.
  passage.origin.assign(after.size(), kMade);
  passage.kept.assign(before.size(), kGone);
  for (std::size_t i = 0, j = 0; j < after.size(); ++j) {
    while (i < before.size() && before[i] < after[j]) ++i;
    if (i < before.size() && before[i] == after[j]) {
      passage.origin[j] = static_cast<std::uint32_t>(i);
      passage.kept[i] = static_cast<std::uint32_t>(j);
    }
  }
}

void CallIdeals::improve_tails(std::size_t from, const Step& step, const Passage& passage) {
  const std::size_t width = passage.read.size() + 1;
  for (std::size_t use = 0; use < uses_; ++use) {
    const auto next = next_use(use, step.accelerator_class);
    if (!next) continue;
    const double* after = tail(step.target, *next);
    if (after[0] == kInfinity) continue;
    double through = step.duration;
    for (std::size_t j = 0; j < passage.origin.size(); ++j) {
      if (passage.origin[j] == kMade) through = std::max(through, step.duration + after[j + 1]);
    }
    double* here = tails_.data() + ideals_[from].first_tail + use * width;
    here[0] = std::min(here[0], std::max(through, after[0]));
    // Of a tensor that the step leaves alone and nobody reads later there is none.
    for (std::size_t i = 0; i < passage.read.size(); ++i) {
      double longest = passage.read[i] != 0 ? through : 0;
      if (passage.kept[i] != kGone) longest = std::max(longest, after[passage.kept[i] + 1]);
      here[i + 1] = std::min(here[i + 1], longest);
    }
  }
}

std::optional<double> CallIdeals::bound(const Stop& stop) {
  if (!tails_.empty()) return tail(0, 0)[0];
  std::vector<double> tails(ideals_.back().first_tail + uses_, kInfinity);
  tails_ = std::move(tails);
  std::fill(tails_.end() - static_cast<std::ptrdiff_t>(uses_), tails_.end(), 0.0);
  Passage passage;
  for (std::size_t ideal = size() - 1; ideal-- > 0;) {
    if (ideal % kStepsBetweenStops == 0 && stop()) {
      tails_.clear();
      return std::nullopt;
    }
    std::uint32_t passed_to = 0;
    for (const Step& step : steps_from(ideal)) {
      if (passed_to != step.target) pass(ideal, step.target, passage);
      passed_to = step.target;
      improve_tails(ideal, step, passage);
    }
  }
  return tail(0, 0)[0];
}

CallIdeals finest_ideals(const Problem& problem, std::size_t limit, int calls_per_device,
                         const CallIdeals::Stop& stop) {
  constexpr std::array kThresholds{-1.0, 0.0,  1e-6, 1e-5, 1e-4, 3e-4,
                                   1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1};
  std::size_t tried = problem.op_count() + 1;
  for (const double threshold : kThresholds) {
    if (stop()) break;
    const Table<OpId, char> keep = ops_above(problem, threshold);
    const auto kept = static_cast<std::size_t>(std::ranges::count(keep, char{1}));
    // A node is a group or a part of one, and a graph has more ideals than nodes.
    if (kept == tried || groups_of(problem, keep) >= limit) continue;
    tried = kept;
    if (auto ideals =
            CallIdeals::all_of(call_graph(problem, keep, calls_per_device), limit, stop)) {
      return std::move(*ideals);
    }
  }
  // Everything left out: one ideal, and no bound.
  const Table<OpId, char> none(problem.op_count(), 0);
  return *CallIdeals::all_of(call_graph(problem, none, calls_per_device),
                             std::max<std::size_t>(limit, 1), [] { return false; });
}

CallIdeals heaviest_ideals(const Problem& problem, std::size_t limit, int calls_per_device,
                           const CallIdeals::Stop& stop) {
  const auto of_heaviest = [&](std::size_t count) {
    return CallIdeals::all_of(call_graph(problem, heaviest_ops(problem, count), calls_per_device),
                              std::max<std::size_t>(limit, 1), stop);
  };
  std::optional<CallIdeals> best;
  std::size_t least = 0;                      // so many are within the limit
  std::size_t most = problem.op_count() + 1;  // so many are not
  while (most - least > 1 && !stop()) {
    const std::size_t count = (least + most) / 2;
    auto ideals = of_heaviest(count);
    (ideals ? least : most) = count;
    if (ideals) best = std::move(ideals);
  }
  if (best) return std::move(*best);
  const Table<OpId, char> none(problem.op_count(), 0);
  return *CallIdeals::all_of(call_graph(problem, none, calls_per_device),
                             std::max<std::size_t>(limit, 1), [] { return false; });
}

}  // namespace placewright
