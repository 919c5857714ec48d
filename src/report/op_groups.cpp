#include "report/op_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "report/name_blocks.h"

namespace placewright {
namespace {

constexpr std::size_t kSmallestGraph = 40;  // below that, blocks would hide more than they show
constexpr std::size_t kMostBlocks = 160;
constexpr std::size_t kBlock = 64;  // ops: a layer of a transformer, a unit of an Inception net
constexpr std::size_t kPart = 12;   // ops: attention, a branch

// Draws the ops of one group; `number` has room for every op.
void draw_group(const Problem& problem, std::size_t group, Grouping& grouping,
                Table<OpId, std::uint32_t>& number) {
  DrawnGroup& drawn = grouping.groups[group];
  for (std::uint32_t i = 0; i < drawn.ops.size(); ++i) number[drawn.ops[i]] = i;
  std::vector<LayoutEdge> edges;
  for (const OpId op : drawn.ops) {
    for (const OpId reader : problem.successors(op)) {
      if (grouping.group_of[reader] == group) edges.emplace_back(number[op], number[reader]);
    }
  }
  LayeredLayout layout = packed_layout(drawn.ops.size(), edges);
  drawn.width = layout.width;
  drawn.height = layout.height;
  for (std::size_t i = 0; i < drawn.ops.size(); ++i) {
    grouping.centre[drawn.ops[i]] = layout.centre[i];
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (layout.bends[i].empty()) continue;
    grouping.bends.push_back(
        {drawn.ops[edges[i].first], drawn.ops[edges[i].second], std::move(layout.bends[i])});
  }
}

void draw_groups(const Problem& problem, Grouping& grouping) {
  grouping.centre = Table<OpId, Point>(problem.op_count());
  Table<OpId, std::uint32_t> number(problem.op_count());
  for (std::size_t group = 0; group < grouping.groups.size(); ++group) {
    draw_group(problem, group, grouping, number);
  }
}

void number_groups(const Problem& problem, Grouping& grouping) {
  grouping.group_of = Table<OpId, std::size_t>(problem.op_count());
  for (std::size_t group = 0; group < grouping.groups.size(); ++group) {
    for (const OpId op : grouping.groups[group].ops) grouping.group_of[op] = group;
  }
}

double mean_rank(const Problem& problem, const DrawnGroup& group) {
  double sum = 0;
  for (const OpId op : group.ops) sum += static_cast<double>(problem.topological_rank(op));
  return sum / static_cast<double>(group.ops.size());
}

// The edges between groups, each once.
std::vector<LayoutEdge> edges_between(const Problem& problem, const Grouping& grouping) {
  std::vector<LayoutEdge> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      const auto from = static_cast<std::uint32_t>(grouping.group_of[op]);
      const auto to = static_cast<std::uint32_t>(grouping.group_of[reader]);
      if (from != to) edges.emplace_back(from, to);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Of each group: its place in a topological order, the lower mean rank first. Colocated ops, or the
// stages of a plan that is not contiguous, may wait for each other in a circle: the group with the
// lowest mean rank then goes first.
std::vector<std::size_t> places_of(const Problem& problem, const Grouping& grouping,
                                   const std::vector<LayoutEdge>& edges) {
  const std::size_t count = grouping.groups.size();
  std::vector<std::vector<std::size_t>> readers(count);
  std::vector<std::size_t> waits(count, 0);
  for (const auto& [from, to] : edges) {
    readers[from].push_back(to);
    ++waits[to];
  }
  std::set<std::tuple<bool, double, std::size_t>> left;  // those that wait come last
  std::vector<double> rank;
  for (std::size_t group = 0; group < count; ++group) {
    rank.push_back(mean_rank(problem, grouping.groups[group]));
    left.emplace(waits[group] > 0, rank[group], group);
  }
  std::vector<std::size_t> place(count, 0);
  for (std::size_t next = 0; next < count; ++next) {
    const std::size_t group = std::get<2>(left.extract(left.begin()).value());
    place[group] = next;
    for (const std::size_t reader : readers[group]) {
      if (--waits[reader] > 0 || left.erase({true, rank[reader], reader}) == 0) continue;
      left.emplace(false, rank[reader], reader);
    }
  }
  return place;
}

// Layers and an order of the groups.
void arrange_groups(const Problem& problem, Grouping& grouping) {
  std::erase_if(grouping.groups, [](const DrawnGroup& group) { return group.ops.empty(); });
  number_groups(problem, grouping);
  std::vector<LayoutEdge> edges = edges_between(problem, grouping);
  const std::vector<std::size_t> place = places_of(problem, grouping, edges);
  std::erase_if(edges, [&](const LayoutEdge& edge) {
    return place[edge.first] > place[edge.second];  // closes a circle
  });
  const LayeredLayout layout = layered_layout(grouping.groups.size(), edges);

  std::vector<std::size_t> order(grouping.groups.size());
  for (std::size_t group = 0; group < order.size(); ++group) {
    grouping.groups[group].layer = layout.layer[group];
    order[group] = group;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(layout.layer[a], layout.centre[a].x) <
           std::pair(layout.layer[b], layout.centre[b].x);
  });
  std::vector<DrawnGroup> sorted;
  for (const std::size_t group : order) sorted.push_back(std::move(grouping.groups[group]));
  grouping.groups = std::move(sorted);
  number_groups(problem, grouping);
}

bool divides_well(const std::vector<NameBlock>& blocks, std::size_t op_count) {
  std::size_t largest = 0;
  for (const NameBlock& block : blocks) largest = std::max(largest, block.ops.size());
  return blocks.size() >= 4 && blocks.size() <= std::max(kMostBlocks / 4, op_count / 4) &&
         blocks.size() <= kMostBlocks && largest <= op_count / 2;
}

// Some blocks at least, each as large as a layer of a transformer at most.
std::size_t block_size(const Problem& problem) {
  return std::clamp(problem.op_count() / 5, kPart, kBlock);
}

// The blocks that the names spell, of `most_ops` ops or, where that makes too many, of some more.
// Empty if the names do not divide the ops well.
std::vector<DrawnGroup> groups_by_name(const Problem& problem, std::size_t most_ops) {
  for (; most_ops <= problem.op_count(); most_ops *= 2) {
    std::vector<NameBlock> blocks = name_blocks(problem, most_ops);
    if (!divides_well(blocks, problem.op_count())) continue;
    std::vector<DrawnGroup> groups;
    for (NameBlock& block : blocks) groups.push_back({std::move(block.name), std::move(block.ops)});
    return groups;
  }
  return {};
}

std::string name_by_first(const Problem& problem, const std::vector<OpId>& ops) {
  const OpId first =
      *std::ranges::min_element(ops, {}, [&](OpId op) { return problem.topological_rank(op); });
  return problem.op(first).name + (ops.size() > 1 ? " …" : "");
}

LayeredLayout layout_of(const Problem& problem) {
  std::vector<LayoutEdge> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      edges.emplace_back(static_cast<std::uint32_t>(op.index()),
                         static_cast<std::uint32_t>(reader.index()));
    }
  }
  return layered_layout(problem.op_count(), edges);
}

// Ops of a band: the square root, so that there are about as many bands as ops in each.
std::size_t band_size(const Problem& problem) {
  const auto root =
      static_cast<std::size_t>(std::sqrt(static_cast<double>(problem.op_count()) / 2));
  return std::max({kPart, root, problem.op_count() / kMostBlocks + 1});
}

// Stretches of ops of one model. Bands of whole layers, or, in graphs whose layers are wider than
// that, pieces of one layer: so an edge between two groups leads to a lower band.
std::vector<DrawnGroup> groups_by_bands(const Problem& problem) {
  const LayeredLayout layout = layout_of(problem);
  const std::size_t size = band_size(problem);
  const std::size_t layers =
      *std::max_element(layout.layer.begin(), layout.layer.end()) + std::size_t{1};
  const std::size_t wide = std::max<std::size_t>(1, problem.op_count() / layers);
  const auto height = static_cast<std::uint32_t>((size + wide - 1) / wide);

  std::map<std::pair<std::uint32_t, ModelId>, std::vector<OpId>> bands;
  for (const OpId op : problem.ops()) {
    bands[{layout.layer[op.index()] / height, problem.op(op).model}].push_back(op);
  }
  std::vector<DrawnGroup> groups;
  for (auto& [place, band] : bands) {
    std::stable_sort(band.begin(), band.end(), [&](OpId a, OpId b) {
      return layout.centre[a.index()].x < layout.centre[b.index()].x;
    });
    const std::size_t pieces =
        height > 1 ? 1 : std::max<std::size_t>(1, (band.size() + size / 2) / size);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const auto begin = static_cast<std::ptrdiff_t>(band.size() * piece / pieces);
      const auto end = static_cast<std::ptrdiff_t>(band.size() * (piece + 1) / pieces);
      std::vector<OpId> ops(band.begin() + begin, band.begin() + end);
      std::string name = name_by_first(problem, ops);
      groups.push_back({std::move(name), std::move(ops), place.first});
    }
  }
  return groups;
}

Grouping drawn(const Problem& problem, std::string name, std::vector<DrawnGroup> groups) {
  Grouping grouping{std::move(name), true, std::move(groups), {}, {}, {}};
  arrange_groups(problem, grouping);
  draw_groups(problem, grouping);
  return grouping;
}

// Groups for ops that `groups` left out: each stands alone.
void add_singles(const Problem& problem, std::vector<DrawnGroup>& groups) {
  Table<OpId, char> grouped(problem.op_count(), 0);
  for (const DrawnGroup& group : groups) {
    for (const OpId op : group.ops) grouped[op] = 1;
  }
  for (const OpId op : problem.ops()) {
    if (!grouped[op]) groups.push_back({problem.op(op).name, {op}});
  }
}

}  // namespace

Grouping flat_grouping(const Problem& problem) {
  DrawnGroup all{problem.name(), {}};
  for (const OpId op : problem.ops()) all.ops.push_back(op);
  Grouping grouping{"ops", false, {std::move(all)}, {}, {}, {}};
  number_groups(problem, grouping);
  draw_groups(problem, grouping);
  return grouping;
}

BlockGroupings block_groupings(const Problem& problem) {
  if (problem.op_count() < kSmallestGraph) return {};
  auto blocks = groups_by_name(problem, block_size(problem));
  if (blocks.empty()) return {.blocks = drawn(problem, "blocks", groups_by_bands(problem))};
  auto parts = groups_by_name(problem, kPart);
  std::optional<Grouping> smaller;
  if (parts.size() > blocks.size()) smaller = drawn(problem, "parts", std::move(parts));
  return {.blocks = drawn(problem, "blocks", std::move(blocks)), .parts = std::move(smaller)};
}

std::optional<Grouping> model_grouping(const Problem& problem) {
  if (problem.model_count() < 2) return std::nullopt;
  std::vector<DrawnGroup> groups;
  for (const ModelId model : problem.models()) groups.push_back({problem.model(model).name, {}});
  for (const OpId op : problem.ops()) groups[problem.op(op).model.index()].ops.push_back(op);
  return drawn(problem, "models", std::move(groups));
}

std::optional<Grouping> colocation_grouping(const Problem& problem) {
  if (problem.group_count() == problem.op_count()) return std::nullopt;
  std::vector<DrawnGroup> groups;
  for (const GroupId group : problem.groups()) {
    const auto ops = problem.group_ops(group);
    groups.push_back(
        {ops.empty() ? std::string{} : problem.op(ops.front()).name, {ops.begin(), ops.end()}});
  }
  return drawn(problem, "colocated", std::move(groups));
}

std::optional<Grouping> plan_grouping(const Problem& problem, const Plan& plan) {
  std::vector<DrawnGroup> groups;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    std::string devices;
    for (const DeviceId device : stage.devices) {
      devices += (devices.empty() ? "" : ", ") + problem.device(device).name;
    }
    groups.push_back({fmt::format("stage {}: {}", i + 1, devices), stage.ops});
  }
  Table<DeviceId, int> calls(problem.device_count(), 0);
  for (const Call& call : plan.calls) {
    groups.push_back(
        {fmt::format("{} call {}", problem.device(call.device).name, ++calls[call.device]),
         call.ops});
  }
  if (groups.empty()) return std::nullopt;
  add_singles(problem, groups);
  return drawn(problem, plan.stages.empty() ? "calls" : "stages", std::move(groups));
}

std::optional<Grouping> planner_grouping(const Problem& problem, const Plan& plan) {
  if (plan.groups.empty()) return std::nullopt;
  std::vector<DrawnGroup> groups;
  for (const std::vector<OpId>& ops : plan.groups) {
    groups.push_back({name_by_first(problem, ops), ops});
  }
  add_singles(problem, groups);
  return drawn(problem, "groups", std::move(groups));
}

}  // namespace placewright
