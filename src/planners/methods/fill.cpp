#include "planners/methods/fill.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "planners/methods/packing.h"

namespace placewright {
namespace {

enum class Memory { respected, ignored };

class Filler {
 public:
  Filler(const Problem& problem, const Blocks& blocks, const Share& full, Memory memory)
      : problem_(problem),
        blocks_(blocks),
        full_(full),
        memory_(memory),
        ledger_(problem),
        op_count_(problem.device_count(), 0),
        placement_(problem.op_count()) {}

  std::optional<Placement> run() {
    const std::size_t devices = problem_.device_count();
    std::size_t current = 0;
    for (const BlockId block : blocks_.keys()) {
      while (current + 1 < devices && takes(block, current) && has_its_share(block, current)) {
        ++current;
      }
      std::size_t target = current;
      while (target < devices && !takes(block, target)) ++target;
      if (target == devices && !one_way()) {
        target = 0;
        while (target < devices && !takes(block, target)) ++target;
      }
      if (target == devices) return std::nullopt;
      if (one_way()) current = target;
      put(block, DeviceId{target});
    }
    return placement_;
  }

 private:
  // Contiguous sets: once a device is left it is closed.
  [[nodiscard]] bool one_way() const {
    return !is_schedule(problem_.objective()) && problem_.rules().contiguity != Contiguity::none;
  }

  [[nodiscard]] bool takes(BlockId block, std::size_t index) {
    const DeviceId device{index};
    const auto ops = blocks_.ops[block];
    if (!std::all_of(ops.begin(), ops.end(),
                     [&](OpId op) { return problem_.allowed(op, device); })) {
      return false;
    }
    return memory_ == Memory::ignored ||
           with_block(block, device, [&] { return ledger_.within(device); });
  }

  [[nodiscard]] bool has_its_share(BlockId block, std::size_t index) {
    const DeviceId device{index};
    return with_block(block, device, [&] {
      return full_(
          Fill{device, ledger_.used(device), op_count_[device] + blocks_.ops[block].size()});
    });
  }

  template <class Question>
  bool with_block(BlockId block, DeviceId device, Question question) {
    for (const OpId op : blocks_.ops[block]) ledger_.add(op, device);
    const bool answer = question();
    for (const OpId op : blocks_.ops[block]) ledger_.remove(op, device);
    return answer;
  }

  void put(BlockId block, DeviceId device) {
    for (const OpId op : blocks_.ops[block]) {
      ledger_.add(op, device);
      placement_[op] = device;
    }
    op_count_[device] += blocks_.ops[block].size();
  }

  const Problem& problem_;
  const Blocks& blocks_;
  const Share& full_;
  Memory memory_;
  MemoryLedger ledger_;
  Table<DeviceId, std::size_t> op_count_;
  Placement placement_;
};

}  // namespace

Answer fill_plan(const Problem& problem, const Share& full, Control& control) {
  Answer answer;
  const Blocks blocks = blocks_of(problem);
  std::optional<Placement> placement = Filler(problem, blocks, full, Memory::respected).run();
  if (placement) answer.plan = plan_of_placement(problem, *placement);
  if (answer.plan) return answer;

  placement = Filler(problem, blocks, full, Memory::ignored).run();
  const PackingCosts costs =
      placement ? cost_of_leaving(problem, *placement) : PackingCosts(problem);
  Packing packing = pack(problem, costs, control);
  if (!packing.placement) {
    answer.proved_infeasible = packing.proved_infeasible;
    answer.reason = std::move(packing.reason);
    return answer;
  }
  answer.plan = plan_of_placement(problem, *packing.placement);
  if (!answer.plan) {
    answer.reason =
        "filling the devices in order ran out of room, and the packing that fits memory breaks a "
        "rule of the objective";
  }
  return answer;
}

}  // namespace placewright
