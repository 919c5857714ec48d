#include "evaluate/calls.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr int kNeverThere = -1;

// For each op on the device the number of times that a path to it has left the device and come
// back; elsewhere the number at which such a path left last, or kNeverThere.
Table<OpId, int> returns_to(const Problem& problem, const Placement& placement, DeviceId device) {
  Table<OpId, int> returns(problem.op_count(), kNeverThere);
  for (const OpId op : problem.topological_order()) {
    const bool here = placement[op] == device;
    int most = here ? 0 : kNeverThere;
    for (const OpId predecessor : problem.predecessors(op)) {
      const int before = returns[predecessor];
      if (before == kNeverThere) continue;
      most = std::max(most, before + (here && placement[predecessor] != device ? 1 : 0));
    }
    returns[op] = most;
  }
  return returns;
}

// Slots of an evaluator for calls in a given order, and what the calls leave out or hold twice.
std::vector<CallEvaluator::Slot> slots_of(const Problem& problem, const Placement& placement,
                                          std::span<const Call> calls,
                                          const CallEvaluator& evaluator) {
  std::vector<CallEvaluator::Slot> slots(problem.op_count(), CallEvaluator::kHostSlot);
  Table<DeviceId, int> used(problem.device_count(), 0);
  std::size_t called = 0;
  for (const Call& call : calls) {
    const CallEvaluator::Slot slot = evaluator.slot(call.device, used[call.device]++);
    for (const OpId op : call.ops) {
      const std::string& name = problem.op(op).name;
      if (placement[op] != call.device || slot == CallEvaluator::kHostSlot) {
        throw std::invalid_argument(
            fmt::format("op '{}' is called on a device that is not its own", name));
      }
      if (slots[op.index()] != CallEvaluator::kHostSlot) {
        throw std::invalid_argument(fmt::format("op '{}' is in two calls", name));
      }
      slots[op.index()] = slot;
      ++called;
    }
  }
  const auto on_accelerator = [&](DeviceId device) { return !problem.on_host(device); };
  if (called != static_cast<std::size_t>(std::ranges::count_if(placement, on_accelerator))) {
    throw std::invalid_argument("an op on an accelerator is in no call");
  }
  return slots;
}

int most_calls_of_a_device(const Problem& problem, std::span<const Call> calls) {
  Table<DeviceId, int> count(problem.device_count(), 0);
  for (const Call& call : calls) ++count[call.device];
  return *std::ranges::max_element(count);
}

}  // namespace

std::vector<Call> split_into_calls(const Problem& problem, const Placement& placement) {
  std::vector<Call> calls;
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device)) continue;
    const Table<OpId, int> returns = returns_to(problem, placement, device);
    const std::size_t first = calls.size();
    for (const OpId op : problem.topological_order()) {
      if (placement[op] != device) continue;
      const std::size_t call = first + static_cast<std::size_t>(returns[op]);
      if (call >= calls.size()) calls.resize(call + 1);
      calls[call].device = device;
      calls[call].ops.push_back(op);
    }
  }
  return calls;
}

std::optional<Plan> call_plan(const Problem& problem, Placement placement,
                              std::vector<Call> calls) {
  CallEvaluator evaluator(problem, most_calls_of_a_device(problem, calls));
  const double value = evaluator.latency(slots_of(problem, placement, calls, evaluator));
  if (evaluator.deadlocked()) return std::nullopt;
  std::erase_if(calls, [](const Call& call) { return call.ops.empty(); });
  for (Call& call : calls) {
    call.start = evaluator.start(call.ops.front());
    call.end = evaluator.end(call.ops.front());
  }
  std::ranges::stable_sort(calls, {}, &Call::start);
  Plan plan;
  plan.placement = std::move(placement);
  plan.calls = std::move(calls);
  plan.value = value;
  return plan;
}

CallEvaluator::CallEvaluator(const Problem& problem)
    : CallEvaluator(problem, problem.rules().calls_per_device) {}

CallEvaluator::CallEvaluator(const Problem& problem, int calls_per_device)
    : problem_(&problem),
      first_slot_(problem.device_count(), kHostSlot),
      slots_(1),
      kind_of_slot_(1, static_cast<std::uint32_t>(problem.kind_count())),
      node_of_(problem.op_count()),
      next_in_node_(problem.op_count()),
      resources_(problem) {
  for (const DeviceId id : problem.devices()) {
    const auto kind = static_cast<std::uint32_t>(problem.kind_of(id).index());
    if (problem.on_host(id)) {
      slots_[0].device = id;
      kind_of_slot_[0] = kind;
      continue;
    }
    const Device& device = problem.device(id);
    first_slot_[id] = slot_count();
    for (int call = 0; call < calls_per_device; ++call) {
      slots_.push_back({id, device.send_overhead, device.receive_overhead, call == 0});
      kind_of_slot_.push_back(kind);
    }
  }
  for (const OpId op : problem.ops()) {
    first_tensor_.push_back(static_cast<std::uint32_t>(tensors_.size()));
    for (const TensorId tensor : problem.outputs(op)) {
      const auto first = static_cast<std::uint32_t>(consumers_.size());
      for (const OpId consumer : problem.consumers(tensor)) {
        consumers_.push_back(static_cast<std::uint32_t>(consumer.index()));
      }
      tensors_.push_back({tensor, problem.host_time(tensor), first,
                          static_cast<std::uint32_t>(consumers_.size())});
    }
    times_.insert(times_.end(), problem.op(op).time.begin(), problem.op(op).time.end());
    times_.push_back(kUnsupported);
  }
  first_tensor_.push_back(static_cast<std::uint32_t>(tensors_.size()));
  nodes_.resize(problem.op_count() + slots_.size());
  queue_.reserve(nodes_.size());
}

double CallEvaluator::latency(std::span<const Slot> slot_of_op) {
  std::ranges::fill(nodes_, Node{});
  enter_ops(slot_of_op);
  for (std::uint32_t op = 0; op < node_of_.size(); ++op) charge_tensors(op, slot_of_op[op]);
  chain_calls();
  start_when_ready();
  resources_.clear();
  last_ = kNone;
  double latest = 0;
  // The queue grows while it is worked through; it ends as an order in which all nodes can run.
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    if (resources_.any()) wait_for_resources(queue_[i]);
    const Node& node = nodes_[queue_[i]];
    const double end = node.ready + node.duration;
    if (last_ == kNone || end > latest) {
      latest = end;
      last_ = queue_[i];
    }
    finish(queue_[i], end);
  }
  const auto runs = [](const Node& node) {
    return node.first_op == kNone || node.waiting_for == 0;
  };
  deadlocked_ = !std::ranges::all_of(nodes_, runs);
  return deadlocked_ ? kInfinity : latest;
}

void CallEvaluator::enter_ops(std::span<const Slot> slot_of_op) {
  const std::size_t columns = problem_->kind_count() + 1;
  for (std::uint32_t op = 0; op < node_of_.size(); ++op) {
    const auto slot = static_cast<std::size_t>(slot_of_op[op]);
    node_of_[op] = slot_of_op[op] == kHostSlot ? op : node_of_slot(slot);
    Node& node = nodes_[node_of_[op]];
    next_in_node_[op] = node.first_op;
    node.first_op = op;
    node.duration += times_[op * columns + kind_of_slot_[slot]];
  }
}

// Into each node that reads a tensor of the op from outside, and out of the op's own.
void CallEvaluator::charge_tensors(std::uint32_t op, Slot slot) {
  const std::uint32_t source = node_of_[op];
  for (std::uint32_t id = first_tensor_[op]; id < first_tensor_[op + 1]; ++id) {
    const TensorRecord& tensor = tensors_[id];
    bool leaves = false;
    for (std::uint32_t i = tensor.first_consumer; i < tensor.end_consumer; ++i) {
      const std::uint32_t target = node_of_[consumers_[i]];
      if (target == source) continue;
      leaves = true;
      Node& reader = nodes_[target];
      ++reader.waiting_for;
      if (target < node_of_.size() || reader.charged_for == id) continue;
      reader.charged_for = id;
      reader.duration += tensor.host_time + receive_overhead(tensor, target - node_of_.size());
    }
    if (leaves && slot != kHostSlot) {
      nodes_[source].duration +=
          tensor.host_time + send_overhead(tensor, static_cast<std::size_t>(slot));
    }
  }
}

void CallEvaluator::chain_calls() {
  std::uint32_t previous = kNone;
  for (std::size_t slot = 1; slot < slots_.size(); ++slot) {
    if (slots_[slot].first_of_device) previous = kNone;
    const std::uint32_t node = node_of_slot(slot);
    if (nodes_[node].first_op == kNone) continue;
    if (previous != kNone) {
      nodes_[previous].next_call = node;
      ++nodes_[node].waiting_for;
    }
    previous = node;
  }
}

void CallEvaluator::start_when_ready() {
  queue_.clear();
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].first_op != kNone && nodes_[node].waiting_for == 0) queue_.push_back(node);
  }
}

void CallEvaluator::wait_for_resources(std::uint32_t node) {
  if (node < node_of_.size()) return;  // a host op
  Node& call = nodes_[node];
  const DeviceId device = slots_[node - node_of_.size()].device;
  double share = 0;
  for (std::uint32_t op = call.first_op; op != kNone; op = next_in_node_[op]) {
    share = std::max(share, problem_->share(OpId{op}, device));
  }
  call.ready = resources_.earliest(problem_->uses(device), share, call.ready, call.duration);
  resources_.hold(problem_->uses(device), share, call.ready, call.duration);
}

void CallEvaluator::finish(std::uint32_t node, double end) {
  for (std::uint32_t op = nodes_[node].first_op; op != kNone; op = next_in_node_[op]) {
    if (first_tensor_[op] == first_tensor_[op + 1]) continue;
    const std::uint32_t begin = tensors_[first_tensor_[op]].first_consumer;
    const std::uint32_t stop = tensors_[first_tensor_[op + 1] - 1].end_consumer;
    for (std::uint32_t i = begin; i < stop; ++i) {
      const std::uint32_t target = node_of_[consumers_[i]];
      if (target != node) release(target, node, end);
    }
  }
  if (nodes_[node].next_call != kNone) release(nodes_[node].next_call, node, end);
}

void CallEvaluator::release(std::uint32_t node, std::uint32_t cause, double end) {
  Node& waiting = nodes_[node];
  if (end > waiting.ready) {
    waiting.ready = end;
    waiting.cause = cause;
  }
  if (--waiting.waiting_for == 0) queue_.push_back(node);
}

double CallEvaluator::end(OpId op) const {
  const Node& node = nodes_[node_of_[op.index()]];
  return node.ready + node.duration;
}

std::vector<OpId> CallEvaluator::critical_ops() const {
  std::vector<OpId> ops;
  if (deadlocked_) return ops;
  for (std::uint32_t node = last_; node != kNone; node = nodes_[node].cause) {
    for (std::uint32_t op = nodes_[node].first_op; op != kNone; op = next_in_node_[op]) {
      ops.push_back(OpId{op});
    }
  }
  return ops;
}

std::optional<Plan> CallEvaluator::plan(std::span<const Slot> slot_of_op) {
  Placement placement(problem_->op_count());
  std::vector<Call> calls(slots_.size());
  for (const OpId op : problem_->ops()) {
    const Slot slot = slot_of_op[op.index()];
    placement[op] = device(slot);
    if (!placement[op].valid()) return std::nullopt;
    if (slot != kHostSlot) calls[static_cast<std::size_t>(slot)].ops.push_back(op);
  }
  for (Slot slot = 1; slot < slot_count(); ++slot) {
    calls[static_cast<std::size_t>(slot)].device = device(slot);
  }
  calls.erase(calls.begin());
  return call_plan(*problem_, std::move(placement), std::move(calls));
}

}  // namespace placewright
