#include "planners/methods/descent.h"

#include <algorithm>
#include <numeric>

#include "bounds/rounding.h"
#include "coarsen/blocks.h"
#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/methods/incumbent.h"
#include "planners/random_numbers.h"

namespace placewright::throughput {
namespace {

class Descent {
 public:
  Descent(const Problem& problem, Incumbent& incumbent, Control& control)
      : problem_(problem),
        incumbent_(incumbent),
        control_(control),
        blocks_(blocks_of(problem)),
        random_(control.budget().seed) {}

  // False: no random start kept all the rules.
  bool run() {
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (control_.should_stop(1)) return false;
      const Placement placement = random_placement();
      if (!valid(placement)) continue;
      descend(placement);
      return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool ordered() const { return problem_.rules().contiguity != Contiguity::none; }

  [[nodiscard]] bool valid(const Placement& placement) const {
    const auto ops = problem_.ops();
    return std::all_of(ops.begin(), ops.end(),
                       [&](OpId op) {
                         return placement[op].valid() && problem_.allowed(op, placement[op]);
                       }) &&
           memory_fits(problem_, placement) && contiguous(problem_, placement);
  }

  // The blocks along a random linear order, cut where the next device would get more than its
  // share.
  Placement random_placement() {
    Placement placement(problem_.op_count());
    std::vector<DeviceId> devices;
    for (const DeviceId device : problem_.devices()) devices.push_back(device);
    std::shuffle(devices.begin(), devices.end(), random_);
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < blocks_.size(); ++i) cuts.push_back(random_.below(devices.size()));
    if (ordered()) std::sort(cuts.begin(), cuts.end());
    MemoryLedger ledger(problem_);
    std::size_t least = 0;
    for (const BlockId block : blocks_.keys()) {
      const auto fits = [&](std::size_t index) {
        double bytes = 0;
        for (const OpId op : blocks_.ops[block]) {
          if (!problem_.allowed(op, devices[index])) return false;
          bytes += ledger.growth(op, devices[index]);
        }
        return within_memory(ledger.used(devices[index]) + bytes, ledger.capacity(devices[index]));
      };
      std::size_t index = std::max(least, cuts[block.index()]);
      while (index < devices.size() && !fits(index)) ++index;
      for (std::size_t i = 0; index == devices.size() && !ordered() && i < devices.size(); ++i) {
        if (fits(i)) index = i;
      }
      if (index == devices.size()) return placement;
      if (ordered()) least = index;
      for (const OpId op : blocks_.ops[block]) {
        ledger.add(op, devices[index]);
        placement[op] = devices[index];
      }
    }
    return placement;
  }

  void descend(const Placement& start) {
    PipelineEvaluator evaluator(problem_, start);
    MemoryLedger ledger(problem_, start);
    incumbent_.offer(start);
    struct Move {
      double value;
      BlockId block;
      DeviceId to;
    };
    std::vector<Move> moves;
    for (bool improved = true; improved;) {
      improved = false;
      moves.clear();
      for (const BlockId block : blocks_.keys()) {
        if (control_.should_stop(1)) return;
        for (const DeviceId to : problem_.devices()) {
          const auto ops = blocks_.ops[block];
          if (evaluator.device(ops.front()) == to) continue;
          const double value = evaluator.value_if_moved(ops, to);
          if (value < safe_sum(evaluator.value())) moves.push_back({value, block, to});
        }
      }
      std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
        return std::tie(a.value, a.block, a.to) < std::tie(b.value, b.block, b.to);
      });
      // The best move that keeps the rules; few break them.
      for (const Move& move : moves) {
        if (control_.should_stop()) return;
        Placement next = evaluator.placement();
        for (const OpId op : blocks_.ops[move.block]) next[op] = move.to;
        if (!valid(next)) continue;
        for (const OpId op : blocks_.ops[move.block]) evaluator.move(op, move.to);
        incumbent_.offer(evaluator.placement());
        improved = true;
        break;
      }
    }
  }

  const Problem& problem_;
  Incumbent& incumbent_;
  Control& control_;
  Blocks blocks_;
  RandomNumbers random_;
};

}  // namespace

void descend_from_random_pipelines(const Problem& problem, std::int64_t restarts,
                                   Incumbent& incumbent, Control& control) {
  Descent descent(problem, incumbent, control);
  for (std::int64_t i = 0; i < restarts && !control.should_stop(); ++i) descent.run();
}

}  // namespace placewright::throughput
