#include "coarsen/dominance.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "problem/reachability.h"

namespace placewright {
namespace {

constexpr std::size_t kReachabilityLimit = 4096;  // blocks; 2 MiB of bits

struct Net {
  BlockId producer;
  std::vector<BlockId> readers;  // distinct, without the producer
  double cost = 0;

  [[nodiscard]] bool read_by(BlockId block) const {
    return std::binary_search(readers.begin(), readers.end(), block);
  }
};

struct BlockRecord {
  std::vector<char> free_on;     // by kind: supported there, and takes no time
  std::vector<char> allowed_on;  // by kind
  DeviceId pin;
  bool pins_agree = true;
  bool needs_memory = false;
};

// Whether a path leads from one block to another; for many blocks, whether an edge does.
class Paths {
 public:
  Paths(const Blocks& blocks, bool exact) : blocks_(blocks) {
    if (!exact) return;
    // Blocks are numbered in topological order.
    std::vector<BlockId> order;
    for (const BlockId block : blocks.keys()) order.push_back(block);
    paths_.emplace(std::span<const BlockId>(order),
                   [&](BlockId block) { return blocks.successors[block]; });
  }

  [[nodiscard]] bool lead(BlockId from, BlockId to) const {
    if (paths_) return paths_->path(from, to);
    const auto next = blocks_.successors[from];
    return std::binary_search(next.begin(), next.end(), to);
  }

 private:
  const Blocks& blocks_;
  std::optional<Reachability<BlockId>> paths_;
};

// Whether some memory might be too small for all ops together, or a stage's bytes cost time.
bool memory_matters(const Problem& problem) {
  double total = 0;
  for (const OpId op : problem.ops()) total += problem.memory(op);
  for (std::size_t i = 0; i < problem.shared_weight_count(); ++i) {
    total += problem.shared_weight_bytes(WeightId{i});
  }
  const Rules& rules = problem.rules();
  if (rules.max_replicas > 1 && rules.replica_bandwidth > 0) return total > 0;
  for (const DeviceId device : problem.devices()) {
    if (problem.space_memory(problem.space(device)) < total) return true;
  }
  return false;
}

class Round {
 public:
  Round(const Problem& problem, const Blocks& blocks)
      : problem_(problem),
        blocks_(blocks),
        ordered_(problem.rules().contiguity == Contiguity::joint),
        overheads_(problem.has_overheads()),
        memory_matters_(memory_matters(problem)),
        paths_(blocks, ordered_ && blocks.size() <= kReachabilityLimit),
        label_(blocks.size()),
        target_(blocks.size(), 0) {
    for (const BlockId block : blocks.keys()) label_[block] = block;
    collect_records();
    collect_nets();
    std::vector<std::pair<BlockId, BlockId>> reversed;
    for (const BlockId from : blocks.keys()) {
      for (const BlockId to : blocks.successors[from]) reversed.emplace_back(to, from);
    }
    predecessors_ = Rows<BlockId, BlockId>::from_pairs(blocks.size(), reversed);
  }

  // The labels after this round; as many merges as there are blocks with label != own id.
  Table<BlockId, BlockId> labels() {
    for (const BlockId block : blocks_.keys()) {
      if (!target_[block] && work_free_somewhere(block)) try_to_merge(block);
    }
    return label_;
  }

 private:
  void collect_records() {
    records_.assign(blocks_.size(), {});
    const std::size_t kinds = problem_.kind_count();
    for (const BlockId block : blocks_.keys()) {
      BlockRecord& record = records_[block.index()];
      record.free_on.assign(kinds, 1);
      record.allowed_on.assign(kinds, 1);
      for (const OpId op : blocks_.ops[block]) {
        for (std::size_t kind = 0; kind < kinds; ++kind) {
          const double time = problem_.op(op).time[kind];
          if (time != 0) record.free_on[kind] = 0;
          if (time == kUnsupported) record.allowed_on[kind] = 0;
        }
        const DeviceId pin = pin_of(op);
        if (pin.valid() && record.pin.valid() && pin != record.pin) record.pins_agree = false;
        if (pin.valid()) record.pin = pin;
        record.needs_memory |= problem_.memory(op) > 0 || !problem_.shared_weights(op).empty();
      }
    }
  }

  [[nodiscard]] DeviceId pin_of(OpId op) const {
    for (const OpId mate : problem_.group_ops(problem_.group(op))) {
      if (problem_.op(mate).pinned_to.valid()) return problem_.op(mate).pinned_to;
    }
    return DeviceId{};
  }

  void collect_nets() {
    const bool host = problem_.interconnect() == InterconnectKind::host;
    std::vector<std::pair<BlockId, std::uint32_t>> members;
    for (const TensorId tensor : problem_.tensors()) {
      Net net;
      net.producer = blocks_.block_of[problem_.producer(tensor)];
      net.cost = host ? problem_.host_time(tensor) : 1;
      if (net.cost == 0 && !overheads_) continue;
      for (const OpId reader : problem_.consumers(tensor)) {
        const BlockId block = blocks_.block_of[reader];
        if (block != net.producer) net.readers.push_back(block);
      }
      if (net.readers.empty()) continue;
      std::sort(net.readers.begin(), net.readers.end());
      net.readers.erase(std::unique(net.readers.begin(), net.readers.end()), net.readers.end());
      const auto id = static_cast<std::uint32_t>(nets_.size());
      members.emplace_back(net.producer, id);
      for (const BlockId reader : net.readers) members.emplace_back(reader, id);
      nets_.push_back(std::move(net));
    }
    nets_of_ = Rows<BlockId, std::uint32_t>::from_pairs(blocks_.size(), members);
  }

  [[nodiscard]] bool work_free_somewhere(BlockId block) const {
    const BlockRecord& record = records_[block.index()];
    if (record.needs_memory && memory_matters_) return false;
    return std::find(record.free_on.begin(), record.free_on.end(), 1) != record.free_on.end();
  }

  // v may stand wherever u may, and takes no time there.
  [[nodiscard]] bool can_follow(BlockId v, BlockId u) const {
    const BlockRecord& moved = records_[v.index()];
    const BlockRecord& kept = records_[u.index()];
    if (!moved.pins_agree || !kept.pins_agree) return false;
    if (moved.pin.valid() && moved.pin != kept.pin) return false;
    for (std::size_t kind = 0; kind < moved.free_on.size(); ++kind) {
      if (kept.allowed_on[kind] != 0 && moved.free_on[kind] == 0) return false;
    }
    return true;
  }

  [[nodiscard]] bool costs_nothing_more(BlockId v, BlockId u) const {
    double saved_out = 0;
    double saved_in = 0;
    double new_out = 0;
    double new_in = 0;
    bool anything_new = false;
    bool shared = false;
    for (const std::uint32_t id : nets_of_[v]) {
      const Net& net = nets_[id];
      const bool private_to_both = net.readers.size() == 1;
      if (net.producer == u) {
        if (private_to_both) saved_out += net.cost;
        shared |= !private_to_both;
      } else if (net.producer == v && private_to_both && net.readers.front() == u) {
        saved_in += net.cost;
      } else if (net.producer == v) {
        new_out += net.cost;
        anything_new = true;
      } else if (!net.read_by(u)) {
        new_in += net.cost;
        anything_new = true;
      } else {
        shared = true;
      }
    }
    if (problem_.rules().training == TrainingMode::phased && problem_.has_backward_ops()) {
      // A transfer may change its pass when one of several readers leaves.
      return !anything_new && !shared;
    }
    if (!anything_new) return true;
    if (overheads_ || problem_.interconnect() == InterconnectKind::links) return false;
    if (problem_.rules().transfers == TransferMode::sequential) {
      return new_out + new_in <= saved_out + saved_in;
    }
    return new_out <= saved_out && new_in <= saved_in;
  }

  void try_to_merge(BlockId v) {
    if (!ordered_) {
      for (const std::uint32_t id : nets_of_[v]) {
        if (try_partner(v, nets_[id].producer)) return;
        for (const BlockId reader : nets_[id].readers) {
          if (try_partner(v, reader)) return;
        }
      }
      return;
    }
    const auto before = predecessors_[v];
    const auto after = blocks_.successors[v];
    // The last predecessor and the first successor in the order of numbers are the only candidates.
    if (!before.empty()) {
      const BlockId last = *std::max_element(before.begin(), before.end());
      const bool all_before = std::all_of(before.begin(), before.end(), [&](BlockId other) {
        return other == last || paths_.lead(other, last);
      });
      if (all_before && try_partner(v, last)) return;
    }
    if (!after.empty()) {
      const BlockId first = *std::min_element(after.begin(), after.end());
      const bool all_after = std::all_of(after.begin(), after.end(), [&](BlockId other) {
        return other == first || paths_.lead(first, other);
      });
      if (all_after && try_partner(v, first)) return;
    }
  }

  // The argument holds for any placement, so moves can follow each other as long as no block both
  // moves and is moved to.
  bool try_partner(BlockId v, BlockId u) {
    if (u == v || label_[u] != u || !can_follow(v, u) || !costs_nothing_more(v, u)) return false;
    label_[v] = u;
    target_[u] = 1;
    return true;
  }

  const Problem& problem_;
  const Blocks& blocks_;
  bool ordered_;
  bool overheads_;
  bool memory_matters_;
  Paths paths_;
  Table<BlockId, BlockId> label_;
  Table<BlockId, char> target_;
  std::vector<BlockRecord> records_;
  std::vector<Net> nets_;
  Rows<BlockId, std::uint32_t> nets_of_;
  Rows<BlockId, BlockId> predecessors_;
};

// Depth-first topological order: of the blocks that are ready, the one that became so last comes
// next.
std::vector<std::size_t> depth_first_order(
    std::size_t count, const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  std::vector<std::vector<std::size_t>> successors(count);
  std::vector<std::size_t> missing(count, 0);
  for (const auto& [from, to] : edges) {
    successors[from].push_back(to);
    ++missing[to];
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = count; i-- > 0;) {
    if (missing[i] == 0) ready.push_back(i);
  }
  std::vector<std::size_t> position(count, 0);
  std::size_t next = 0;
  while (!ready.empty()) {
    const std::size_t block = ready.back();
    ready.pop_back();
    position[block] = next++;
    for (std::size_t i = successors[block].size(); i-- > 0;) {
      if (--missing[successors[block][i]] == 0) ready.push_back(successors[block][i]);
    }
  }
  return position;
}

}  // namespace

Blocks joined(const Problem& problem, const Blocks& blocks, const Table<BlockId, BlockId>& label) {
  Table<BlockId, std::size_t> compact(blocks.size(), blocks.size());
  std::size_t count = 0;
  for (const BlockId block : blocks.keys()) {
    std::size_t& number = compact[label[block]];
    if (number == blocks.size()) number = count++;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const BlockId from : blocks.keys()) {
    for (const BlockId to : blocks.successors[from]) {
      const std::size_t a = compact[label[from]];
      const std::size_t b = compact[label[to]];
      if (a != b) edges.emplace_back(a, b);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::vector<std::size_t> position(count);
  if (problem.rules().contiguity != Contiguity::none) {
    position = depth_first_order(count, edges);
  } else {
    for (std::size_t i = 0; i < count; ++i) position[i] = i;
  }

  Blocks result;
  result.block_of = Table<OpId, BlockId>(problem.op_count());
  std::vector<std::pair<BlockId, OpId>> members;
  for (const OpId op : problem.topological_order()) {
    result.block_of[op] = BlockId{position[compact[label[blocks.block_of[op]]]]};
    members.emplace_back(result.block_of[op], op);
  }
  result.ops = Rows<BlockId, OpId>::from_pairs(count, members);
  std::vector<std::pair<BlockId, BlockId>> block_edges;
  for (const auto& [from, to] : edges) {
    block_edges.emplace_back(BlockId{position[from]}, BlockId{position[to]});
  }
  std::sort(block_edges.begin(), block_edges.end());
  result.successors = Rows<BlockId, BlockId>::from_pairs(count, block_edges);
  return result;
}

Blocks merge_dominated(const Problem& problem, Blocks blocks) {
  const Rules& rules = problem.rules();
  if (rules.contiguity == Contiguity::per_device || rules.memory == MemoryModel::peak)
    return blocks;
  for (;;) {
    const Table<BlockId, BlockId> label = Round(problem, blocks).labels();
    const auto merged = [&](BlockId block) { return label[block] != block; };
    const auto keys = blocks.keys();
    if (std::none_of(keys.begin(), keys.end(), merged)) return blocks;
    blocks = joined(problem, blocks, label);
  }
}

}  // namespace placewright
