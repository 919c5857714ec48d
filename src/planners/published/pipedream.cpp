// pipedream: the best split of a line of biconnected components, with replicas.
//
// PipeDream's optimizer works on a chain of layers. As in the comparison of Tarnawski et al., a
// graph that is no chain is made one: the blocks of each biconnected component (of the graph
// without directions, the component's first block left out since it ends the one before) become one
// block, and what remains is put in a depth-first topological order. Prefixes of that line are the
// only ideals; the best split of it, with replicas as the rules allow, is exact for our cost model.
// O(line^2 x devices).
//
// References: D. Narayanan et al., "PipeDream", SOSP 2019; J. Hopcroft and R. Tarjan, CACM 16
// (1973).

#include <algorithm>

#include "coarsen/dominance.h"
#include "planners/methods/contiguous_search.h"
#include "planners/published/published.h"

namespace placewright {
namespace {

using namespace throughput;

// Biconnected components by depth-first search with an explicit stack. Calls `found` with the
// blocks of each one.
class Biconnected {
 public:
  explicit Biconnected(const Blocks& blocks)
      : neighbours_(blocks.size()), number_(blocks.size(), 0), low_(blocks.size(), 0) {
    for (const BlockId from : blocks.keys()) {
      for (const BlockId to : blocks.successors[from]) {
        neighbours_[from.index()].push_back(to.index());
        neighbours_[to.index()].push_back(from.index());
      }
    }
  }

  template <class Found>
  void run(Found found) {
    for (std::size_t root = 0; root < neighbours_.size(); ++root) {
      if (number_[root] == 0) search(root, found);
    }
  }

 private:
  struct Frame {
    std::size_t block;
    std::size_t parent;
    std::size_t next = 0;
  };

  template <class Found>
  void search(std::size_t root, Found found) {
    std::vector<Frame> frames{{root, root}};
    number_[root] = low_[root] = ++clock_;
    path_ = {root};
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const std::size_t block = frame.block;
      if (frame.next < neighbours_[block].size()) {
        const std::size_t other = neighbours_[block][frame.next++];
        if (number_[other] == 0) {
          number_[other] = low_[other] = ++clock_;
          path_.push_back(other);
          frames.push_back({other, block});
        } else if (other != frame.parent) {
          low_[block] = std::min(low_[block], number_[other]);
        }
        continue;
      }
      const std::size_t parent = frame.parent;
      frames.pop_back();
      if (frames.empty()) break;
      low_[parent] = std::min(low_[parent], low_[block]);
      if (low_[block] < number_[parent]) continue;
      std::vector<std::size_t> component{parent};
      std::size_t member = 0;
      do {
        member = path_.back();
        path_.pop_back();
        component.push_back(member);
      } while (member != block);
      found(component);
    }
  }

  std::vector<std::vector<std::size_t>> neighbours_;
  std::vector<std::size_t> number_;
  std::vector<std::size_t> low_;
  std::vector<std::size_t> path_;
  std::size_t clock_ = 0;
};

std::size_t representative(std::vector<std::size_t>& parent, std::size_t block) {
  while (parent[block] != block) block = parent[block] = parent[parent[block]];
  return block;
}

// Components as single blocks. Merging may close cycles where a component has several ends; such
// blocks are fused by taking all blocks between them in the order of numbers.
Blocks chain_of_components(const Problem& problem, const Blocks& blocks) {
  std::vector<std::size_t> parent(blocks.size());
  for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = i;
  const auto join = [&](std::size_t a, std::size_t b) {
    parent[representative(parent, a)] = representative(parent, b);
  };
  Biconnected(blocks).run([&](std::vector<std::size_t>& component) {
    if (component.size() < 3) return;
    std::sort(component.begin(), component.end());
    for (std::size_t i = 2; i < component.size(); ++i) join(component[i], component[1]);
  });
  // A merged set is a range of numbers, or else what lies between might both follow and precede it.
  std::vector<std::size_t> last(blocks.size(), 0);
  for (std::size_t i = 0; i < parent.size(); ++i) last[representative(parent, i)] = i;
  for (std::size_t i = 0; i < parent.size();) {
    std::size_t end = last[representative(parent, i)];
    for (std::size_t k = i; k <= end; ++k) end = std::max(end, last[representative(parent, k)]);
    for (std::size_t k = i + 1; k <= end; ++k) join(k, i);
    last[representative(parent, i)] = end;
    i = end + 1;
  }
  Table<BlockId, BlockId> label(blocks.size());
  for (const BlockId block : blocks.keys()) {
    label[block] = BlockId{representative(parent, block.index())};
  }
  return joined(problem, blocks, label);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const StageModel model(problem, chain_of_components(problem, blocks_of(problem)));
  std::vector<std::uint32_t> line(model.block_count());
  for (std::uint32_t i = 0; i < line.size(); ++i) line[i] = i;
  const ProgramResult result =
      best_split_along(model, {std::move(line)}, model.work_bound(), control);
  Answer answer;
  if (result.split) answer.plan = plan_of_split(model, *result.split);
  if (answer.plan) {
    control.report(*answer.plan, 0);
  } else {
    answer.reason = !result.complete ? control.stop_reason()
                                     : "no split of the line of components fits the devices";
  }
  return answer;
}

}  // namespace

PlannerEntry pipedream() {
  return PlannerEntry{.name = "pipedream",
                      .summary = "best split, with replicas, of a line of biconnected components",
                      .objectives = {Objective::throughput},
                      .role = Role::published,
                      .knows = kContiguousKnows,
                      .refuses = refuses_contiguous,
                      .plan = plan};
}

}  // namespace placewright
