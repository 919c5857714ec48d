// scotch: balanced parts with a small cut, by the graph partitioner Scotch.
//
// Node weights are times on the fastest class of devices, edge weights transfer times; one part for
// each accelerator. Where devices share, the fastest set of cores may be the only one of its class
// and leave nothing for others: each class is tried. Scotch knows no direction, memory or support,
// so its parts are repaired: parts are ordered by the mean place of their blocks, and along a
// topological order each block goes to its part's device, or (contiguous rules) to that of a later
// part where a predecessor is later already, or to the next device with room that can run it. A
// baseline.
//
// Reference: F. Pellegrini and J. Roman, HPCN 1996; used as a baseline by J. Tarnawski et al.,
// NeurIPS 2020.

#include <algorithm>
#include <numeric>

#include "evaluate/memory.h"
#include "planners/methods/incumbent.h"
#include "planners/methods/stage_model.h"
#include "planners/published/published.h"
#include "planners/refusals.h"
#include "solvers/graph_partition.h"

namespace placewright {
namespace {

using namespace throughput;

solvers::PartitionGraph graph_of(const StageModel& model, std::size_t device_class) {
  solvers::PartitionGraph graph;
  const DeviceClass& kind = model.classes()[device_class];
  for (std::size_t v = 0; v < model.block_count(); ++v) {
    graph.node_weight.push_back(kind.forward[v] + kind.backward[v]);
  }
  for (std::uint32_t id = 0; id < model.nets().size(); ++id) {
    const Net& net = model.nets()[id];
    const double cost =
        kind.profile < 0 ? 1 : model.cost(id, static_cast<std::size_t>(kind.profile)).all_out();
    for (const NetReader& reader : net.readers) {
      graph.edges.push_back({static_cast<int>(net.producer), static_cast<int>(reader.block), cost});
    }
  }
  return graph;
}

// The class with the most work per time.
std::size_t main_class(const StageModel& model) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < model.classes().size(); ++c) {
    if (model.classes()[c].rate > model.classes()[best].rate) best = c;
  }
  return best;
}

std::vector<std::size_t> classes_to_try(const StageModel& model) {
  if (!model.problem().has_sharing()) return {main_class(model)};
  std::vector<std::size_t> all(model.classes().size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

// Devices in the order of their parts' mean place in the graph, those without a part behind.
std::vector<DeviceId> device_order(const StageModel& model, const std::vector<int>& part,
                                   const std::vector<DeviceId>& devices,
                                   std::vector<std::size_t>& rank_of_part) {
  std::vector<double> sum(devices.size(), 0);
  std::vector<double> count(devices.size(), 0);
  for (std::size_t v = 0; v < part.size(); ++v) {
    sum[static_cast<std::size_t>(part[v])] += static_cast<double>(v);
    ++count[static_cast<std::size_t>(part[v])];
  }
  std::vector<std::size_t> order(devices.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double place_a = count[a] > 0 ? sum[a] / count[a] : kInfinity;
    const double place_b = count[b] > 0 ? sum[b] / count[b] : kInfinity;
    return place_a < place_b;
  });
  std::vector<DeviceId> result;
  rank_of_part.assign(devices.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank_of_part[order[i]] = i;
    result.push_back(devices[order[i]]);
  }
  for (const DeviceId device : model.problem().devices()) {
    if (std::find(result.begin(), result.end(), device) == result.end()) result.push_back(device);
  }
  return result;
}

std::optional<Placement> repaired(const StageModel& model, const std::vector<int>& part,
                                  const std::vector<DeviceId>& devices) {
  const Problem& problem = model.problem();
  const bool ordered = problem.rules().contiguity != Contiguity::none;
  std::vector<std::size_t> rank_of_part;
  const std::vector<DeviceId> order = device_order(model, part, devices, rank_of_part);
  MemoryLedger ledger(problem);
  Placement placement(problem.op_count());
  std::vector<std::size_t> earliest(model.block_count(), 0);
  for (const BlockId block : model.blocks().keys()) {
    const auto ops = model.blocks().ops[block];
    const auto fits = [&](std::size_t rank) {
      double bytes = ledger.used(order[rank]);
      for (const OpId op : ops) {
        if (!problem.allowed(op, order[rank])) return false;
        bytes += ledger.growth(op, order[rank]);
      }
      return within_memory(bytes, ledger.capacity(order[rank]));
    };
    const std::size_t wish = rank_of_part[static_cast<std::size_t>(part[block.index()])];
    std::size_t rank = ordered ? std::max(wish, earliest[block.index()]) : wish;
    std::size_t tried = 0;
    while (tried < order.size() && (rank == order.size() || !fits(rank))) {
      if (ordered && rank == order.size()) return std::nullopt;
      rank = ordered ? rank + 1 : (rank + 1) % order.size();
      ++tried;
    }
    if (tried == order.size()) return std::nullopt;
    for (const OpId op : ops) {
      ledger.add(op, order[rank]);
      placement[op] = order[rank];
    }
    for (const BlockId next : model.blocks().successors[block]) {
      earliest[next.index()] = std::max(earliest[next.index()], rank);
    }
  }
  return placement;
}

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  Incumbent incumbent(problem, control);
  // Scotch is not interrupted.
  constexpr double kSecondsPerEdge = 3e-5;
  constexpr double kBytesPerEdge = 500;
  const auto edges = static_cast<double>(problem.op_count() + problem.edge_count());
  const double seconds = edges * kSecondsPerEdge;
  const double bytes = edges * kBytesPerEdge;
  if (const std::string obstacle = control.cannot_afford(seconds, bytes); !obstacle.empty()) {
    return incumbent.answer("Scotch was not begun: " + obstacle);
  }
  const StageModel model(problem, blocks_of(problem));
  solvers::PartitionOptions options;
  options.imbalance = settings.number("imbalance");
  options.seed = control.budget().seed;
  for (const std::size_t kind : classes_to_try(model)) {
    const std::vector<DeviceId>& devices = model.classes()[kind].devices;
    options.parts = static_cast<int>(devices.size());
    const solvers::PartitionResult parts = solvers::partition_graph(graph_of(model, kind), options);
    if (!parts.ok()) return incumbent.answer("Scotch: " + parts.error);
    if (const auto placement = repaired(model, parts.part, devices)) incumbent.offer(*placement);
    if (!control.cannot_afford(seconds, bytes).empty()) break;
  }
  return incumbent.answer(
      "Scotch's parts could not be repaired to keep memory, support and contiguity");
}

}  // namespace

PlannerEntry scotch() {
  return PlannerEntry{
      .name = "scotch",
      .summary = "balanced parts with a small cut by Scotch, repaired to keep the rules",
      .objectives = {Objective::throughput},
      .role = Role::published,
      .knows = kCommonAndSharing - Features{Feature::peak_memory},
      .options = {{"imbalance", "excess of a part over its share", 0.05, 0, 1}},
      .plan = plan};
}

}  // namespace placewright
