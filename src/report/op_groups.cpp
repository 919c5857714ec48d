#include "report/op_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr std::size_t kSmallestGraph = 40;  // below that, blocks would hide more than they show
constexpr std::size_t kMostBlocks = 160;

// Draws the ops of one group; `number` has room for every op.
void draw_group(const Problem& problem, std::size_t group, Grouping& grouping,
                Table<OpId, std::uint32_t>& number) {
  OpGroup& drawn = grouping.groups[group];
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

double mean_rank(const Problem& problem, const OpGroup& group) {
  double sum = 0;
  for (const OpId op : group.ops) sum += static_cast<double>(problem.topological_rank(op));
  return sum / static_cast<double>(group.ops.size());
}

// Layers and an order of the groups. Groups may feed each other in a circle: then the edge that
// goes from a later group (by mean topological rank) to an earlier one is left out.
void arrange_groups(const Problem& problem, Grouping& grouping) {
  std::erase_if(grouping.groups, [](const OpGroup& group) { return group.ops.empty(); });
  std::stable_sort(grouping.groups.begin(), grouping.groups.end(),
                   [&](const OpGroup& a, const OpGroup& b) {
                     return mean_rank(problem, a) < mean_rank(problem, b);
                   });
  number_groups(problem, grouping);
  std::vector<LayoutEdge> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      const auto from = static_cast<std::uint32_t>(grouping.group_of[op]);
      const auto to = static_cast<std::uint32_t>(grouping.group_of[reader]);
      if (from < to) edges.emplace_back(from, to);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
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
  std::vector<OpGroup> sorted;
  for (const std::size_t group : order) sorted.push_back(std::move(grouping.groups[group]));
  grouping.groups = std::move(sorted);
  number_groups(problem, grouping);
}

std::string leading_part(std::string_view name, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t part = 0; part < depth; ++part) {
    const std::size_t next = name.find_first_of("/.", end == 0 ? 0 : end + 1);
    if (next == std::string_view::npos) break;
    end = next;
  }
  return std::string(name.substr(0, end));
}

// The groups that the first `depth` parts of the names make; ops with shorter names stand alone.
std::vector<OpGroup> groups_by_name(const Problem& problem, std::size_t depth) {
  std::map<std::pair<ModelId, std::string>, std::vector<OpId>> by_name;
  std::vector<OpGroup> groups;
  for (const OpId op : problem.ops()) {
    std::string part = leading_part(problem.op(op).name, depth);
    if (part.empty()) {
      groups.push_back({problem.op(op).name, {op}});
    } else {
      by_name[{problem.op(op).model, std::move(part)}].push_back(op);
    }
  }
  for (auto& [key, ops] : by_name) groups.push_back({key.second, std::move(ops)});
  return groups;
}

bool divides_well(const std::vector<OpGroup>& groups, std::size_t op_count) {
  std::size_t largest = 0;
  for (const OpGroup& group : groups) largest = std::max(largest, group.ops.size());
  return groups.size() >= 4 && groups.size() <= std::max(kMostBlocks / 4, op_count / 5) &&
         groups.size() <= kMostBlocks && largest <= op_count / 2;
}

// Cuts the layers into bands, and each band from left to right into stretches of about `size` ops.
std::vector<OpGroup> groups_by_bands(const Problem& problem, const LayeredLayout& layout,
                                     std::size_t size) {
  const std::size_t layers =
      *std::max_element(layout.layer.begin(), layout.layer.end()) + std::size_t{1};
  const double layer_width = static_cast<double>(problem.op_count()) / static_cast<double>(layers);
  const auto target = static_cast<double>(size);
  const auto band_height = static_cast<std::uint32_t>(std::max(
      1.0, std::ceil(layer_width >= std::sqrt(target) ? std::sqrt(target) : target / layer_width)));

  std::vector<std::vector<OpId>> bands((layers + band_height - 1) / band_height);
  for (const OpId op : problem.ops()) bands[layout.layer[op.index()] / band_height].push_back(op);
  std::vector<OpGroup> groups;
  for (std::uint32_t layer = 0; layer < bands.size(); ++layer) {
    std::vector<OpId>& band = bands[layer];
    std::stable_sort(band.begin(), band.end(), [&](OpId a, OpId b) {
      return std::pair(problem.op(a).model, layout.centre[a.index()].x) <
             std::pair(problem.op(b).model, layout.centre[b.index()].x);
    });
    const std::size_t pieces = std::max<std::size_t>(1, (band.size() + size / 2) / size);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::size_t begin = band.size() * piece / pieces;
      const std::size_t end = band.size() * (piece + 1) / pieces;
      if (begin == end) continue;
      OpGroup group{"",
                    {band.begin() + static_cast<std::ptrdiff_t>(begin),
                     band.begin() + static_cast<std::ptrdiff_t>(end)},
                    layer};
      const auto first = std::min_element(group.ops.begin(), group.ops.end(), [&](OpId a, OpId b) {
        return problem.topological_rank(a) < problem.topological_rank(b);
      });
      group.name = group.ops.size() == 1 ? problem.op(*first).name
                                         : fmt::format("{} …", problem.op(*first).name);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

Grouping drawn(const Problem& problem, std::string name, std::vector<OpGroup> groups) {
  Grouping grouping{std::move(name), true, std::move(groups), {}, {}, {}};
  arrange_groups(problem, grouping);
  draw_groups(problem, grouping);
  return grouping;
}

// Groups for ops that `groups` left out: each stands alone.
void add_singles(const Problem& problem, std::vector<OpGroup>& groups) {
  Table<OpId, char> grouped(problem.op_count(), 0);
  for (const OpGroup& group : groups) {
    for (const OpId op : group.ops) grouped[op] = 1;
  }
  for (const OpId op : problem.ops()) {
    if (!grouped[op]) groups.push_back({problem.op(op).name, {op}});
  }
}

}  // namespace

Grouping flat_grouping(const Problem& problem) {
  OpGroup all{problem.name(), {}};
  for (const OpId op : problem.ops()) all.ops.push_back(op);
  Grouping grouping{"ops", false, {std::move(all)}, {}, {}, {}};
  number_groups(problem, grouping);
  draw_groups(problem, grouping);
  return grouping;
}

std::optional<Grouping> block_grouping(const Problem& problem) {
  if (problem.op_count() < kSmallestGraph) return std::nullopt;
  constexpr std::size_t kDeepestName = 6;
  for (std::size_t depth = kDeepestName; depth > 0; --depth) {
    auto groups = groups_by_name(problem, depth);
    if (divides_well(groups, problem.op_count())) {
      return drawn(problem, "blocks", std::move(groups));
    }
  }
  std::vector<LayoutEdge> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      edges.emplace_back(static_cast<std::uint32_t>(op.index()),
                         static_cast<std::uint32_t>(reader.index()));
    }
  }
  const LayeredLayout layout = layered_layout(problem.op_count(), edges);
  const std::size_t size = std::max<std::size_t>(
      12, static_cast<std::size_t>(std::sqrt(static_cast<double>(problem.op_count()) / 2)));
  Grouping grouping{"blocks", true, {}, {}, {}, {}};
  grouping.groups =
      groups_by_bands(problem, layout, std::max(size, problem.op_count() / kMostBlocks + 1));
  number_groups(problem, grouping);
  draw_groups(problem, grouping);
  return grouping;
}

std::optional<Grouping> colocation_grouping(const Problem& problem) {
  if (problem.group_count() == problem.op_count()) return std::nullopt;
  std::vector<OpGroup> groups;
  for (const GroupId group : problem.groups()) {
    const auto ops = problem.group_ops(group);
    groups.push_back(
        {ops.empty() ? std::string{} : problem.op(ops.front()).name, {ops.begin(), ops.end()}});
  }
  return drawn(problem, "colocated", std::move(groups));
}

std::optional<Grouping> plan_grouping(const Problem& problem, const Plan& plan) {
  std::vector<OpGroup> groups;
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

}  // namespace placewright
