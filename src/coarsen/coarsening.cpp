#include "coarsen/coarsening.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "coarsen/blocks.h"
#include "coarsen/refinement.h"
#include "evaluate/rules/durations.h"
#include "problem/part.h"

namespace placewright {
namespace {

constexpr std::size_t kListedTypes = 6;

// "Convolution+Add+Relu"
std::string joined_types(const Problem& fine, std::span<const OpId> members) {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == kListedTypes) return text + "+…";
    const std::string& type = fine.op(members[i]).type;
    if (!text.empty() && !type.empty()) text += '+';
    text += type;
  }
  return text;
}

// By kind: a set holds from its start to its end what the most demanding of its members takes.
std::vector<double> contracted_share(const Problem& fine, std::span<const OpId> members) {
  std::vector<double> most = fine.op(members.front()).share;
  for (const OpId member : members) {
    const std::vector<double>& share = fine.op(member).share;
    if (share.empty()) return {};
    for (std::size_t kind = 0; kind < most.size(); ++kind) {
      most[kind] = std::max(most[kind], share[kind]);
    }
  }
  return most;
}

// The first member lends its name, which no other set has.
Op contracted(const Problem& fine, std::span<const OpId> members) {
  Op op = fine.op(members.front());
  for (const OpId member : members.subspan(1)) {
    const Op& other = fine.op(member);
    op.memory += other.memory;
    for (std::size_t kind = 0; kind < op.time.size(); ++kind) op.time[kind] += other.time[kind];
    if (other.pinned_to.valid()) op.pinned_to = other.pinned_to;
  }
  op.share = contracted_share(fine, members);
  if (members.size() > 1) op.type = joined_types(fine, members);
  return op;
}

// The sets of given ops, each once, in order of appearance.
class DistinctSets {
 public:
  explicit DistinctSets(const Table<OpId, OpId>& coarse_op)
      : coarse_op_(coarse_op), seen_(coarse_op.size(), 0) {}

  std::vector<OpId> of(std::span<const OpId> ops, OpId without = OpId{}) {
    ++round_;
    std::vector<OpId> sets;
    for (const OpId op : ops) {
      const OpId set = coarse_op_[op];
      if (set == without || std::exchange(seen_[set], round_) == round_) continue;
      sets.push_back(set);
    }
    return sets;
  }

 private:
  const Table<OpId, OpId>& coarse_op_;
  Table<OpId, std::size_t> seen_;  // by set: the last round that met it
  std::size_t round_ = 0;
};

struct ContractedTensors {
  std::vector<Tensor> tensors;
  std::vector<TensorId> fine;  // what each stands for
};

ContractedTensors contracted_tensors(const Problem& fine, const Table<OpId, OpId>& coarse_op) {
  const bool bytes_count = fine.rules().memory == MemoryModel::peak;
  DistinctSets sets(coarse_op);
  ContractedTensors contracted;
  for (const TensorId id : fine.tensors()) {
    const OpId producer = coarse_op[fine.producer(id)];
    std::vector<OpId> consumers = sets.of(fine.consumers(id), producer);
    const bool inside = consumers.empty() && !fine.consumers(id).empty();
    if (inside && !(bytes_count && fine.tensor(id).bytes > 0)) continue;
    Tensor tensor = fine.tensor(id);
    tensor.producer = producer;
    tensor.consumers = std::move(consumers);
    contracted.tensors.push_back(std::move(tensor));
    contracted.fine.push_back(id);
  }
  return contracted;
}

// Members that the rules keep together anyway: contracting them loses nothing for a pipeline, whose
// value looks at sets of ops only.
bool forced_together(const Problem& fine, const Rows<OpId, OpId>& members) {
  if (members.size() == fine.op_count()) return true;
  if (fine.objective() != Objective::throughput ||
      fine.rules().contiguity == Contiguity::per_device) {
    return false;
  }
  const Blocks blocks = blocks_of(fine);
  for (const OpId set : ids<OpId>(members.size())) {
    const BlockId block = blocks.block_of[members[set].front()];
    for (const OpId op : members[set]) {
      if (blocks.block_of[op] != block) return false;
    }
  }
  return true;
}

Partition proposal(const Problem& fine, const CoarsenOptions& options) {
  switch (options.method) {
    case CoarsenMethod::colocation:
      return colocation_partition(fine);
    case CoarsenMethod::classes:
      return class_partition(fine);
    case CoarsenMethod::chains:
      return chain_partition(fine, options.speedup_ratio, options.longest_packed);
    case CoarsenMethod::fusion:
      return fusion_partition(fine);
    case CoarsenMethod::none:
      break;
  }
  return separate(fine);
}

}  // namespace

struct Coarsening::Built {
  Table<OpId, OpId> coarse_op;
  Rows<OpId, OpId> members;
  std::vector<TensorId> fine_tensors;
  Problem coarse;

  static Built from(const Problem& fine, const Partition& partition);
  static Built refined_from(const Problem& fine, const Partition& proposed);
};

Coarsening::Built Coarsening::Built::from(const Problem& fine, const Partition& partition) {
  std::size_t count = 0;
  Table<OpId, OpId> coarse_op(fine.op_count());
  std::vector<std::pair<OpId, OpId>> pairs;
  for (const OpId op : fine.topological_order()) {
    coarse_op[op] = OpId{partition[op].index()};
    pairs.emplace_back(coarse_op[op], op);
    count = std::max(count, partition[op].index() + 1);
  }
  auto members = Rows<OpId, OpId>::from_pairs(count, pairs);

  ProblemDraft draft = frame_of(fine);
  draft.ops.reserve(count);
  for (const OpId set : ids<OpId>(count)) draft.ops.push_back(contracted(fine, members[set]));
  ContractedTensors tensors = contracted_tensors(fine, coarse_op);
  draft.tensors = std::move(tensors.tensors);
  DistinctSets distinct(coarse_op);
  for (const auto& group : fine.draft().colocated) {
    auto sets = distinct.of(group);
    if (sets.size() > 1) draft.colocated.push_back(std::move(sets));
  }
  for (const SharedWeight& weight : fine.draft().shared_weights) {
    draft.shared_weights.push_back({weight.name, weight.bytes, distinct.of(weight.ops)});
  }
  return Built{std::move(coarse_op), std::move(members), std::move(tensors.fine),
               Problem(std::move(draft))};
}

Coarsening::Built Coarsening::Built::refined_from(const Problem& fine, const Partition& proposed) {
  Partition partition = refined(fine, proposed);
  while (true) {
    Built built = from(fine, partition);
    Partition settled = without_moved_receivers(fine, built.coarse, partition);
    if (settled == partition) return built;
    partition = std::move(settled);
  }
}

Coarsening::Coarsening(const Problem& fine, Built built)
    : fine_(&fine),
      coarse_op_(std::move(built.coarse_op)),
      members_(std::move(built.members)),
      fine_tensor_(std::move(built.fine_tensors)),
      coarse_(std::move(built.coarse)),
      lossless_(forced_together(fine, members_)) {}

Coarsening::Coarsening(const Problem& fine, const Partition& partition)
    : Coarsening(fine, Built::refined_from(fine, partition)) {}

Coarsening::Coarsening(const Problem& fine, const CoarsenOptions& options)
    : Coarsening(fine, proposal(fine, options)) {}

std::vector<OpId> Coarsening::expand(std::span<const OpId> ops) const {
  std::vector<OpId> expanded;
  for (const OpId op : ops)
    expanded.insert(expanded.end(), members_[op].begin(), members_[op].end());
  return expanded;
}

Schedule Coarsening::expand(const Schedule& schedule, const Placement& placement) const {
  Schedule expanded;
  expanded.transfers.reserve(schedule.transfers.size());
  for (Transfer transfer : schedule.transfers) {
    transfer.tensor = fine_tensor_[transfer.tensor];
    expanded.transfers.push_back(transfer);
  }
  const Table<OpId, double> duration = op_durations(*fine_, placement);
  expanded.start.assign(fine_->op_count(), 0);
  expanded.end.assign(fine_->op_count(), 0);
  for (const OpId set : coarse_.ops()) {
    double now = schedule.start[set];
    for (const OpId op : members_[set]) {
      expanded.start[op] = now;
      expanded.end[op] = now += duration[op];
    }
    // The sum of the members' times may differ from the set's in its last bit.
    expanded.end[members_[set].back()] = schedule.end[set];
  }
  return expanded;
}

Plan Coarsening::expand(const Plan& plan) const {
  Plan expanded;
  expanded.value = plan.value;
  expanded.placement = Placement(fine_->op_count());
  for (const OpId op : fine_->ops()) expanded.placement[op] = plan.placement[coarse_op_[op]];
  if (plan.schedule) expanded.schedule = expand(*plan.schedule, expanded.placement);
  for (const Stage& stage : plan.stages) {
    Stage& whole = expanded.stages.emplace_back(stage);
    whole.ops = expand(stage.ops);
  }
  for (const Call& call : plan.calls) {
    expanded.calls.push_back({call.device, expand(call.ops), call.start, call.end});
  }
  for (const std::vector<OpId>& group : plan.groups) expanded.groups.push_back(expand(group));
  return expanded;
}

}  // namespace placewright
