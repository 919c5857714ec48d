#include "report/name_blocks.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace placewright {
namespace {

using Path = std::string_view;                            // the leading part of a name
using BlockOf = Table<OpId, std::size_t>;                 // op -> block
using Adjacency = std::vector<std::vector<std::size_t>>;  // block -> blocks, once for each edge

constexpr const char* kSeparators = "/.";

Path parent(Path path) {
  const std::size_t end = path.find_last_of(kSeparators);
  return end == Path::npos ? Path{} : path.substr(0, end);
}

bool is_word(Path name) {
  return name.find_first_of(kSeparators) == Path::npos;
}

// Whether `path` is `ancestor` or lies below it.
bool below(Path path, Path ancestor) {
  return path.starts_with(ancestor) &&
         (ancestor.empty() || path.size() == ancestor.size() ||
          std::string_view(kSeparators).find(path[ancestor.size()]) != std::string_view::npos);
}

Path in_common(Path a, Path b) {
  while (!below(b, a)) a = parent(a);
  return a;
}

// The name without the model's, which stands before it where there are several models.
Path own_name(const Problem& problem, OpId op) {
  const Path name = problem.op(op).name;
  const Path model = problem.model(problem.op(op).model).name;
  const bool led = problem.model_count() > 1 && below(name, model) && name.size() > model.size();
  return led ? name.substr(model.size() + 1) : name;
}

Table<OpId, Path> paths_of(const Problem& problem) {
  Table<OpId, Path> paths(problem.op_count());
  const auto order = problem.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const Path name = own_name(problem, *op);
    paths[*op] = parent(name);
    const auto readers = problem.successors(*op);
    if (!is_word(name) || readers.empty()) continue;
    paths[*op] = paths[readers.front()];
    for (const OpId reader : readers) paths[*op] = in_common(paths[*op], paths[reader]);
  }
  return paths;
}

class Tree {
 public:
  Tree(const Problem& problem, std::size_t most_ops)
      : problem_(problem), most_ops_(most_ops), paths_(paths_of(problem)) {
    for (const OpId op : problem.ops()) {
      for (Path path = paths_[op];; path = parent(path)) {
        ++sizes_[{model(op), path}];
        if (path.empty()) break;
      }
    }
  }

  // The highest node above the op that is no larger than a block may be, and whether there is one:
  // else the op stands in an opened node itself.
  [[nodiscard]] std::pair<Path, bool> node_of(OpId op) const {
    std::pair<Path, bool> found{paths_[op], false};
    for (Path path = paths_[op];; path = parent(path)) {
      if (sizes_.at({model(op), path}) > most_ops_) break;
      found = {path, true};
      if (path.empty()) break;
    }
    return found;
  }

 private:
  [[nodiscard]] ModelId model(OpId op) const { return problem_.op(op).model; }

  const Problem& problem_;
  std::size_t most_ops_;
  Table<OpId, Path> paths_;
  std::map<std::pair<ModelId, Path>, std::size_t> sizes_;
};

// Ops joined step by step: each set is known by one of its ops.
class Parts {
 public:
  explicit Parts(std::size_t op_count) : leader_(op_count) {
    for (const OpId op : leader_.keys()) leader_[op] = op;
  }
  OpId of(OpId op) {
    while (leader_[op] != op) op = leader_[op] = leader_[leader_[op]];
    return op;
  }
  void join(OpId a, OpId b) { leader_[of(b)] = of(a); }

 private:
  Table<OpId, OpId> leader_;
};

std::vector<NameBlock> blocks_of_tree(const Problem& problem, std::size_t most_ops) {
  const Tree tree(problem, most_ops);
  Parts parts(problem.op_count());
  std::map<std::pair<ModelId, Path>, OpId> first;  // of each node that is a block
  for (const OpId op : problem.topological_order()) {
    const auto [path, whole] = tree.node_of(op);
    const ModelId model = problem.op(op).model;
    if (whole) parts.join(first.emplace(std::pair(model, path), op).first->second, op);
    for (const OpId reader : problem.successors(op)) {
      if (!whole && tree.node_of(reader) == std::pair(path, false)) parts.join(op, reader);
    }
  }
  std::vector<NameBlock> blocks;
  std::map<OpId, std::size_t> numbered;
  for (const OpId op : problem.topological_order()) {
    const auto [block, is_new] = numbered.emplace(parts.of(op), blocks.size());
    if (is_new) {
      const auto [path, whole] = tree.node_of(op);
      const ModelId model = problem.op(op).model;
      const bool led = problem.model_count() > 1;
      const std::string name =
          !whole         ? problem.op(op).name
          : path.empty() ? problem.model(model).name
                         : (led ? problem.model(model).name + "/" : "") + std::string(path);
      blocks.push_back({name, {}});
    }
    blocks[block->second].ops.push_back(op);
  }
  return blocks;
}

BlockOf numbered(const Problem& problem, const std::vector<NameBlock>& blocks) {
  BlockOf block_of(problem.op_count());
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (const OpId op : blocks[block].ops) block_of[op] = block;
  }
  return block_of;
}

// Peels off blocks that wait only for peeled ones, again and again; `peeled` has room for all.
void peel(const Adjacency& waits_for, const Adjacency& readers, std::vector<bool>& peeled) {
  std::vector<std::size_t> waits(readers.size(), 0);
  std::vector<std::size_t> ready;
  for (std::size_t block = 0; block < readers.size(); ++block) {
    for (const std::size_t before : waits_for[block]) waits[block] += peeled[before] ? 0U : 1U;
    if (waits[block] == 0 && !peeled[block]) ready.push_back(block);
  }
  while (!ready.empty()) {
    const std::size_t block = ready.back();
    ready.pop_back();
    peeled[block] = true;
    for (const std::size_t reader : readers[block]) {
      if (--waits[reader] == 0 && !peeled[reader]) ready.push_back(reader);
    }
  }
}

// Marks the blocks that are in no circle and on no way from one circle to another.
std::vector<bool> outside_circles(const Problem& problem, const BlockOf& block_of,
                                  std::size_t count) {
  Adjacency sources(count), readers(count);
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      if (block_of[op] == block_of[reader]) continue;
      readers[block_of[op]].push_back(block_of[reader]);
      sources[block_of[reader]].push_back(block_of[op]);
    }
  }
  std::vector<bool> peeled(count, false);
  peel(sources, readers, peeled);
  peel(readers, sources, peeled);
  return peeled;
}

std::vector<NameBlock> without_circles(const Problem& problem,
                                       const std::vector<NameBlock>& blocks) {
  const BlockOf block_of = numbered(problem, blocks);
  const std::vector<bool> outside = outside_circles(problem, block_of, blocks.size());
  Table<OpId, std::size_t> level(problem.op_count(), 0);
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> pieces;  // of block and level
  std::vector<NameBlock> cut;
  for (const OpId op : problem.topological_order()) {
    const std::size_t block = block_of[op];
    for (const OpId before : problem.predecessors(op)) {
      if (outside[block] || outside[block_of[before]]) continue;
      level[op] = std::max(level[op], level[before] + (block_of[before] == block ? 0U : 1U));
    }
    const auto [piece, is_new] = pieces.emplace(std::pair(block, level[op]), cut.size());
    if (is_new) cut.push_back({blocks[block].name, {}});
    cut[piece->second].ops.push_back(op);
  }
  return cut;
}

// Blocks of one name are told apart by a number.
void tell_apart(std::vector<NameBlock>& blocks) {
  std::map<std::string, std::size_t> used;
  for (NameBlock& block : blocks) {
    const std::size_t before = used[block.name]++;
    if (before > 0) block.name += fmt::format(" ({})", before + 1);
  }
}

}  // namespace

std::vector<NameBlock> name_blocks(const Problem& problem, std::size_t most_ops) {
  std::vector<NameBlock> blocks = without_circles(problem, blocks_of_tree(problem, most_ops));
  tell_apart(blocks);
  return blocks;
}

}  // namespace placewright
