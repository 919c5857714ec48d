#include "planners/methods/call_filling.h"

#include <algorithm>

#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "planners/methods/assignment.h"

namespace placewright::calls {
namespace {

class Filling {
 public:
  explicit Filling(const Problem& problem)
      : problem_(problem), evaluator_(problem), ledger_(problem), slots_(all_on_host(problem)) {
    for (const DeviceId device : problem.devices()) {
      if (problem.on_host(device)) {
        host_ = device;
      } else {
        accelerators_.push_back(device);
      }
    }
  }

  std::optional<Plan> run() {
    const Blocks blocks = blocks_of(problem_);
    for (const BlockId block : blocks.keys()) place(blocks.ops[block]);
    return plan_of_slots(problem_, evaluator_, slots_);
  }

 private:
  [[nodiscard]] bool allowed(std::span<const OpId> ops, DeviceId device) const {
    return std::ranges::all_of(
        ops, [&](OpId op) { return problem_.group_allowed(problem_.group(op), device); });
  }

  bool put(std::span<const OpId> ops, DeviceId device, Slot slot) {
    std::size_t placed = 0;
    while (placed < ops.size() && ledger_.fits(ops[placed], device)) {
      ledger_.add(ops[placed++], device);
    }
    if (placed == ops.size()) {
      for (const OpId op : ops) slots_[op.index()] = slot;
      return true;
    }
    while (placed > 0) ledger_.remove(ops[--placed], device);
    return false;
  }

  void place(std::span<const OpId> ops) {
    while (current_ < accelerators_.size()) {
      const DeviceId device = accelerators_[current_];
      if (!allowed(ops, device)) {
        if (on_host(ops)) return;
        next_accelerator();
        continue;
      }
      if (put(ops, device, evaluator_.slot(device, call_))) {
        open_ = true;
        return;
      }
      next_accelerator();
    }
    on_host(ops);
  }

  bool on_host(std::span<const OpId> ops) {
    if (!host_.valid() || !allowed(ops, host_)) return false;
    if (open_) close_call();
    return put(ops, host_, CallEvaluator::kHostSlot);
  }

  void close_call() {
    open_ = false;
    if (++call_ == problem_.rules().calls_per_device) next_accelerator();
  }

  void next_accelerator() {
    ++current_;
    call_ = 0;
    open_ = false;
  }

  const Problem& problem_;
  CallEvaluator evaluator_;
  MemoryLedger ledger_;
  Slots slots_;
  DeviceId host_;
  std::vector<DeviceId> accelerators_;
  std::size_t current_ = 0;
  int call_ = 0;
  bool open_ = false;
};

}  // namespace

std::optional<Plan> filled_calls(const Problem& problem) {
  return Filling(problem).run();
}

}  // namespace placewright::calls
