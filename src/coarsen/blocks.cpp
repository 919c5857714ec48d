#include "coarsen/blocks.h"

#include <algorithm>

namespace placewright {
namespace {

using GroupGraph = Rows<GroupId, GroupId>;

void sort_and_deduplicate(std::vector<std::pair<GroupId, GroupId>>& edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
}

// Tarjan's strongly connected components without recursion. Components are numbered in reverse
// topological order. The search starts at the groups that nothing precedes, the last first, so
// reversing the numbers gives a depth-first topological order from the first group on.
class Components {
 public:
  explicit Components(const GroupGraph& graph)
      : graph_(graph), index_(graph.size(), 0), low_(graph.size(), 0), component_(graph.size()) {
    Table<GroupId, char> preceded(graph.size(), 0);
    for (const GroupId group : preceded.keys()) {
      for (const GroupId successor : graph[group]) preceded[successor] = 1;
    }
    for (const bool roots_only : {true, false}) {
      for (std::size_t i = graph.size(); i-- > 0;) {
        const GroupId group{i};
        if (index_[group] == 0 && !(roots_only && preceded[group])) visit(group);
      }
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] BlockId operator[](GroupId group) const {
    return BlockId{count_ - 1 - component_[group].index()};
  }

 private:
  struct Frame {
    GroupId group;
    std::size_t next;  // successors still to visit: those below this position
  };

  void visit(GroupId root) {
    frames_.push_back(open(root));
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const GroupId group = frame.group;
      if (frame.next > 0) {
        const GroupId successor = graph_[group][--frame.next];
        if (index_[successor] == 0) {
          frames_.push_back(open(successor));
        } else if (!component_[successor].valid()) {
          low_[group] = std::min(low_[group], index_[successor]);
        }
        continue;
      }
      if (low_[group] == index_[group]) close(group);
      frames_.pop_back();
      if (!frames_.empty()) {
        std::size_t& parent_low = low_[frames_.back().group];
        parent_low = std::min(parent_low, low_[group]);
      }
    }
  }

  Frame open(GroupId group) {
    index_[group] = low_[group] = ++clock_;
    stack_.push_back(group);
    return Frame{group, graph_[group].size()};
  }

  void close(GroupId root) {
    GroupId member;
    do {
      member = stack_.back();
      stack_.pop_back();
      component_[member] = BlockId{count_};
    } while (member != root);
    ++count_;
  }

  const GroupGraph& graph_;
  Table<GroupId, std::size_t> index_;
  Table<GroupId, std::size_t> low_;
  Table<GroupId, BlockId> component_;
  std::vector<Frame> frames_;
  std::vector<GroupId> stack_;
  std::size_t clock_ = 0;
  std::size_t count_ = 0;
};

Blocks from_assignment(const Problem& problem, std::size_t count, Table<OpId, BlockId> block_of) {
  Blocks blocks;
  std::vector<std::pair<BlockId, OpId>> members;
  for (const OpId op : problem.topological_order()) members.emplace_back(block_of[op], op);
  blocks.ops = Rows<BlockId, OpId>::from_pairs(count, members);
  blocks.block_of = std::move(block_of);
  return blocks;
}

void add_edges(Blocks& blocks, const Problem& problem,
               const std::vector<std::pair<GroupId, GroupId>>& group_edges) {
  std::vector<std::pair<BlockId, BlockId>> edges;
  for (const auto& [from, to] : group_edges) {
    const BlockId a = blocks.block_of[problem.group_ops(from).front()];
    const BlockId b = blocks.block_of[problem.group_ops(to).front()];
    if (a != b) edges.emplace_back(a, b);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  blocks.successors = Rows<BlockId, BlockId>::from_pairs(blocks.size(), edges);
}

}  // namespace

std::vector<std::pair<GroupId, GroupId>> contiguity_edges(const Problem& problem) {
  Table<GroupId, char> orphan(problem.group_count(), 1);
  for (const OpId op : problem.ops()) {
    if (!problem.op(op).backward) orphan[problem.group(op)] = 0;
  }
  std::vector<std::pair<GroupId, GroupId>> edges;
  for (const OpId from : problem.ops()) {
    const GroupId a = problem.group(from);
    for (const OpId to : problem.successors(from)) {
      const GroupId b = problem.group(to);
      const bool backward_from = problem.op(from).backward;
      const bool backward_to = problem.op(to).backward;
      if (a == b) continue;
      if (!backward_from && !backward_to) edges.emplace_back(a, b);
      if (backward_from && backward_to && (orphan[a] || orphan[b])) edges.emplace_back(b, a);
    }
  }
  sort_and_deduplicate(edges);
  return edges;
}

Blocks blocks_of(const Problem& problem) {
  Table<OpId, BlockId> block_of(problem.op_count());
  const auto edges = contiguity_edges(problem);
  if (asks_contiguity(problem.objective(), problem.rules())) {
    const auto graph = GroupGraph::from_pairs(problem.group_count(), edges);
    const Components components(graph);
    for (const OpId op : problem.ops()) block_of[op] = components[problem.group(op)];
    Blocks blocks = from_assignment(problem, components.count(), std::move(block_of));
    add_edges(blocks, problem, edges);
    return blocks;
  }
  Table<GroupId, BlockId> first_seen(problem.group_count());
  std::size_t count = 0;
  for (const OpId op : problem.topological_order()) {
    BlockId& block = first_seen[problem.group(op)];
    if (!block.valid()) block = BlockId{count++};
    block_of[op] = block;
  }
  Blocks blocks = from_assignment(problem, count, std::move(block_of));
  add_edges(blocks, problem, edges);
  return blocks;
}

}  // namespace placewright
