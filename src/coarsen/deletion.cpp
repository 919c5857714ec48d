#include "coarsen/deletion.h"

#include <algorithm>
#include <array>
#include <utility>

#include "coarsen/cut_nodes.h"
#include "problem/reachability.h"

namespace placewright {
namespace {

constexpr std::size_t kMostOps = 4000;
// Whoever uses a remainder looks at pairs of devices for each op of a segment.
constexpr std::size_t kMostDevices = 64;
constexpr std::array<double, 5> kShares{0.3, 0.1, 0.05, 0.02, 0.01};

// Ops are called by their rank in the topological order.
class Deletion {
 public:
  explicit Deletion(const Problem& problem)
      : problem_(problem),
        ops_(problem.op_count()),
        paths_(problem.topological_order(), [&](OpId op) { return problem.successors(op); }),
        kept_(ops_, 1),
        work_(ops_),
        beside_(ops_, 0) {
    for (std::size_t op = 0; op < ops_; ++op) {
      double least = kInfinity;
      for (const DeviceId device : problem.devices()) {
        if (problem.allowed(at(op), device)) least = std::min(least, problem.time(at(op), device));
      }
      work_[op] = least;
      all_work_ += least;
    }
    // Ops that take no time keep a graph from splitting as others do.
    const double smallest = all_work_ > 0 ? 1e-6 * all_work_ / static_cast<double>(ops_) : 1;
    for (double& work : work_) work += smallest;
    for (std::size_t op = 0; op < ops_; ++op) {
      for (std::size_t later = op + 1; later < ops_; ++later) {
        if (before(op, later)) continue;
        beside_[op] += work_[later];
        beside_[later] += work_[op];
      }
    }
  }

  // Leaves ops out until none runs beside more than this share of all work.
  void leave_out_above(double share) {
    while (true) {
      std::size_t worst = ops_;
      for (std::size_t op = 0; op < ops_; ++op) {
        if (kept_[op] && (worst == ops_ || beside_[op] > beside_[worst])) worst = op;
      }
      if (worst == ops_ || beside_[worst] <= share * all_work_) return;
      kept_[worst] = 0;
      for (std::size_t op = 0; op < ops_; ++op) {
        if (op != worst && !comparable(op, worst)) beside_[op] -= work_[worst];
      }
    }
  }

  [[nodiscard]] Remainder rest() {
    find_hubs();
    ProblemDraft draft = problem_.draft();
    Table<OpId, OpId> renamed(ops_);
    std::vector<OpId> original;
    draft.ops.clear();
    for (const OpId id : problem_.ops()) {
      if (!kept_[problem_.topological_rank(id)]) continue;
      renamed[id] = OpId{draft.ops.size()};
      original.push_back(id);
      draft.ops.push_back(problem_.op(id));
    }
    for (Device& device : draft.cluster.devices) device.send_overhead = device.receive_overhead = 0;
    draft.tensors = kept_tensors(renamed);
    for (auto& group : draft.colocated) group = kept_of(group, renamed);
    std::erase_if(draft.colocated, [](const auto& group) { return group.size() < 2; });
    for (SharedWeight& weight : draft.shared_weights) weight.ops = kept_of(weight.ops, renamed);
    std::erase_if(draft.shared_weights, [](const auto& weight) { return weight.ops.empty(); });
    return Remainder{Problem(std::move(draft)), std::move(original)};
  }

 private:
  [[nodiscard]] OpId at(std::size_t rank) const { return problem_.topological_order()[rank]; }
  [[nodiscard]] bool before(std::size_t op, std::size_t later) const {
    return paths_.path(at(op), at(later));
  }
  [[nodiscard]] bool comparable(std::size_t a, std::size_t b) const {
    return before(std::min(a, b), std::max(a, b));
  }

  void find_hubs() {
    hubs_.clear();
    for (std::size_t op = 0; op < ops_; ++op) {
      bool hub = kept_[op] != 0;
      for (std::size_t other = 0; hub && other < ops_; ++other) {
        hub = other == op || !kept_[other] || comparable(op, other);
      }
      if (hub) hubs_.push_back(op);
    }
  }

  // Whether a hub comes after one op and before another: such hubs are those whose rank is between.
  [[nodiscard]] bool passes_over_hub(std::size_t from, std::size_t to) const {
    const auto next = std::upper_bound(hubs_.begin(), hubs_.end(), from);
    return next != hubs_.end() && *next < to;
  }

  static std::vector<OpId> kept_of(const std::vector<OpId>& ops, const Table<OpId, OpId>& renamed) {
    std::vector<OpId> kept;
    for (const OpId op : ops) {
      if (renamed[op].valid()) kept.push_back(renamed[op]);
    }
    return kept;
  }

  [[nodiscard]] std::vector<Tensor> kept_tensors(const Table<OpId, OpId>& renamed) const {
    std::vector<Tensor> tensors;
    for (Tensor tensor : problem_.draft().tensors) {
      const OpId producer = tensor.producer;
      if (!renamed[producer].valid()) continue;
      std::erase_if(tensor.consumers, [&](OpId reader) {
        return passes_over_hub(problem_.topological_rank(producer),
                               problem_.topological_rank(reader));
      });
      tensor.consumers = kept_of(tensor.consumers, renamed);
      if (tensor.consumers.empty()) continue;
      tensor.producer = renamed[producer];
      tensor.cuts.clear();
      tensors.push_back(std::move(tensor));
    }
    add_precedence(renamed, tensors);
    return tensors;
  }

  // For each kept op the last kept ops before it that only ops left out lead to it from.
  void add_precedence(const Table<OpId, OpId>& renamed, std::vector<Tensor>& tensors) const {
    const std::size_t devices = problem_.device_count();
    Tensor order;
    if (problem_.interconnect() == InterconnectKind::links) {
      order.link_times.assign(devices * devices, 0);
    }
    std::vector<std::vector<std::size_t>> last(ops_);  // by op left out: the last kept ops before
    for (std::size_t op = 0; op < ops_; ++op) {
      std::vector<std::size_t> through;  // ops left out
      std::vector<std::size_t> direct;   // kept
      for (const OpId id : problem_.predecessors(at(op))) {
        const std::size_t predecessor = problem_.topological_rank(id);
        if (kept_[predecessor]) {
          direct.push_back(predecessor);
        } else {
          through.insert(through.end(), last[predecessor].begin(), last[predecessor].end());
        }
      }
      std::vector<std::size_t> all = direct;
      all.insert(all.end(), through.begin(), through.end());
      if (kept_[op] == 0) {
        last[op] = latest_of(all, all);
        continue;
      }
      for (const std::size_t before : latest_of(through, all)) {
        if (std::ranges::find(direct, before) != direct.end()) continue;
        order.producer = renamed[at(before)];
        order.consumers = {renamed[at(op)]};
        tensors.push_back(order);
      }
    }
  }

  // Those that come before none of `others`.
  [[nodiscard]] std::vector<std::size_t> latest_of(std::vector<std::size_t> ops,
                                                   const std::vector<std::size_t>& others) const {
    std::ranges::sort(ops);
    ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
    std::erase_if(ops, [&](std::size_t op) {
      return std::ranges::any_of(
          others, [&](std::size_t other) { return other > op && before(op, other); });
    });
    return ops;
  }

  const Problem& problem_;
  std::size_t ops_;
  Reachability<OpId> paths_;
  std::vector<char> kept_;
  std::vector<double> work_;    // the least time, a little more than 0
  std::vector<double> beside_;  // work of the kept ops that are not comparable
  double all_work_ = 0;
  std::vector<std::size_t> hubs_;  // in order
};

}  // namespace

std::vector<Remainder> remainders(const Problem& problem) {
  std::vector<Remainder> found;
  if (problem.model_count() != 1 || problem.op_count() == 0 || problem.op_count() > kMostOps ||
      problem.device_count() > kMostDevices) {
    return found;
  }
  Deletion deletion(problem);
  std::size_t cuts = cut_nodes(problem).size();
  for (const double share : kShares) {
    deletion.leave_out_above(share);
    Remainder rest = deletion.rest();
    const std::size_t more = cut_nodes(rest.problem).size();
    if (more <= cuts) continue;
    cuts = more;
    found.push_back(std::move(rest));
  }
  return found;
}

}  // namespace placewright
