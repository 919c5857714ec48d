#include "planners/learned/graph_parsing.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace placewright::learned {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

// For each node the edge that it keeps; kNone where it keeps none.
std::vector<std::size_t> kept_edges(std::size_t node_count,
                                    std::span<const std::pair<std::int64_t, std::int64_t>> edges,
                                    std::span<const float> scores, float threshold) {
  std::vector<std::size_t> kept(node_count, kNone);
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    if (!(scores[edge] >= threshold)) continue;
    for (const std::int64_t end : {edges[edge].first, edges[edge].second}) {
      std::size_t& best = kept[static_cast<std::size_t>(end)];
      if (best == kNone || scores[edge] > scores[best]) best = edge;
    }
  }
  return kept;
}

class Grouping {
 public:
  Grouping(std::size_t node_count, std::span<const std::uint8_t> allowed)
      : devices_(node_count == 0 ? 0 : allowed.size() / node_count),
        allowed_(allowed),
        group_(node_count, kNone) {}

  [[nodiscard]] bool taken(std::size_t node) const { return group_[node] != kNone; }

  void begin(std::size_t node) {
    common_.assign(allowed_.begin() + static_cast<std::ptrdiff_t>(node * devices_),
                   allowed_.begin() + static_cast<std::ptrdiff_t>((node + 1) * devices_));
    group_[node] = count_;
  }

  // Whether the node became a member of the group begun last.
  bool add(std::size_t node) {
    std::vector<std::uint8_t> both = common_;
    bool any = false;
    for (std::size_t d = 0; d < devices_; ++d) {
      both[d] = both[d] != 0 && allowed_[node * devices_ + d] != 0 ? 1 : 0;
      any = any || both[d] != 0;
    }
    if (!any) return false;
    common_ = std::move(both);
    group_[node] = count_;
    return true;
  }

  void end() { ++count_; }

  // The groups, numbered anew by their first members.
  [[nodiscard]] ParsedGraph finish() const {
    std::vector<std::int64_t> number(count_, -1);
    ParsedGraph parsed;
    for (const std::size_t group : group_) {
      if (number[group] < 0) number[group] = parsed.group_count++;
      parsed.group_of.push_back(number[group]);
    }
    return parsed;
  }

 private:
  std::size_t devices_;
  std::span<const std::uint8_t> allowed_;
  std::vector<std::size_t> group_;
  std::vector<std::uint8_t> common_;
  std::size_t count_ = 0;
};

}  // namespace

ParsedGraph parse_graph(std::int64_t node_count,
                        std::span<const std::pair<std::int64_t, std::int64_t>> edges,
                        std::span<const float> scores, float threshold,
                        std::span<const std::uint8_t> allowed) {
  const auto nodes = static_cast<std::size_t>(node_count);
  const std::vector<std::size_t> kept = kept_edges(nodes, edges, scores, threshold);
  const auto other_end = [&](std::size_t node) {
    const auto& [a, b] = edges[kept[node]];
    return static_cast<std::size_t>(static_cast<std::size_t>(a) == node ? b : a);
  };
  std::vector<std::vector<std::size_t>> followers(nodes);
  std::vector<std::size_t> by_score;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (kept[node] == kNone) continue;
    followers[other_end(node)].push_back(node);
    by_score.push_back(node);
  }
  std::stable_sort(by_score.begin(), by_score.end(),
                   [&](std::size_t a, std::size_t b) { return scores[kept[a]] > scores[kept[b]]; });

  Grouping grouping(nodes, allowed);
  for (const std::size_t start : by_score) {
    if (grouping.taken(start)) continue;
    grouping.begin(start);
    std::vector<std::size_t> members{start};
    const std::size_t partner = other_end(start);
    if (!grouping.taken(partner) && grouping.add(partner)) members.push_back(partner);
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (const std::size_t follower : followers[members[i]]) {
        if (!grouping.taken(follower) && grouping.add(follower)) members.push_back(follower);
      }
    }
    grouping.end();
  }
  for (std::size_t node = 0; node < nodes; ++node) {
    if (grouping.taken(node)) continue;
    grouping.begin(node);
    grouping.end();
  }
  return grouping.finish();
}

}  // namespace placewright::learned
