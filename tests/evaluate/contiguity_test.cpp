#include "evaluate/contiguity.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "evaluate/pipeline.h"
#include "support/random_problem.h"
#include "support/records.h"

namespace placewright {
namespace {

using testing::device_record;
using testing::model_record;
using testing::op_record;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;
using testing::tensor_record;

bool is_orphan(const Problem& problem, GroupId group) {
  const auto backward = [&](OpId op) { return problem.op(op).backward; };
  return std::ranges::all_of(problem.group_ops(group), backward);
}

// Whether x comes right before y in the forward graph. An orphan is one node: each of its ops
// stands for all of them.
bool right_before(const Problem& problem, OpId x, OpId y) {
  const GroupId gx = problem.group(x);
  const GroupId gy = problem.group(y);
  const bool orphans = is_orphan(problem, gx) || is_orphan(problem, gy);
  const auto in_graph = [&](OpId op) {
    return !problem.op(op).backward || is_orphan(problem, problem.group(op));
  };
  if (!in_graph(x) || !in_graph(y)) return false;
  for (const OpId from : problem.ops()) {
    for (const OpId to : problem.successors(from)) {
      const bool backward = problem.op(from).backward && problem.op(to).backward;
      if (from == x && to == y && !problem.op(x).backward && !problem.op(y).backward) return true;
      if (backward && orphans && problem.group(to) == gx && problem.group(from) == gy) return true;
    }
  }
  return false;
}

using Relation = std::vector<std::vector<char>>;

Relation edges_of(const Problem& problem) {
  Relation edge(problem.op_count(), std::vector<char>(problem.op_count(), 0));
  for (const OpId x : problem.ops()) {
    for (const OpId y : problem.ops()) {
      edge[x.index()][y.index()] = right_before(problem, x, y) ? 1 : 0;
    }
  }
  return edge;
}

Relation paths_of(Relation path) {
  for (std::size_t k = 0; k < path.size(); ++k) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      for (std::size_t j = 0; j < path.size(); ++j) {
        if (path[i][k] != 0 && path[k][j] != 0) path[i][j] = 1;
      }
    }
  }
  return path;
}

// Every order of the devices; a prefix of a good one has no edge coming in from behind.
bool jointly_by_orders(const Problem& problem, const Placement& placement, const Relation& edge) {
  std::vector<std::size_t> position(problem.device_count());
  std::iota(position.begin(), position.end(), 0);
  do {
    bool good = true;
    for (const OpId x : problem.ops()) {
      for (const OpId y : problem.ops()) {
        if (edge[x.index()][y.index()] == 0) continue;
        if (position[placement[x].index()] > position[placement[y].index()]) good = false;
      }
    }
    if (good) return true;
  } while (std::ranges::next_permutation(position).found);
  return false;
}

bool per_device_by_triples(const Problem& problem, const Placement& placement,
                           const Relation& path) {
  for (const OpId first : problem.ops()) {
    for (const OpId last : problem.ops()) {
      if (placement[first] != placement[last]) continue;
      for (const OpId between : problem.ops()) {
        if (placement[between] != placement[first] && path[first.index()][between.index()] != 0 &&
            path[between.index()][last.index()] != 0) {
          return false;
        }
      }
    }
  }
  return true;
}

// Mostly in order, so that contiguous placements are not rare.
Placement nearly_ordered(const Problem& problem, RandomSource& random) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.ops()) {
    const std::size_t run =
        problem.topological_rank(op) * problem.device_count() / problem.op_count();
    placement[op] = DeviceId{random.chance(0.15) ? random.below(problem.device_count()) : run};
  }
  for (const GroupId group : problem.groups()) {
    const auto ops = problem.group_ops(group);
    for (const OpId op : ops) placement[op] = placement[ops.front()];
  }
  return placement;
}

TEST(Contiguity, AgreesWithTheDefinitions) {
  int joint = 0;
  int convex_only = 0;
  int neither = 0;
  int orphans = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomProblemOptions options;
    options.objective = Objective::throughput;
    options.ops = 12;
    options.devices = 2 + seed % 4;
    options.edge_probability = 0.12;
    options.training = seed % 2 == 0;
    const Problem problem(random_draft(options, seed));
    const Relation edge = edges_of(problem);
    const Relation path = paths_of(edge);
    for (const GroupId group : problem.groups()) orphans += is_orphan(problem, group) ? 1 : 0;
    RandomSource random(seed);
    for (int i = 0; i < 5; ++i) {
      const Placement placement = nearly_ordered(problem, random);
      const bool jointly = jointly_contiguous(problem, placement);
      const bool per_device = per_device_contiguous(problem, placement);
      ASSERT_EQ(jointly, jointly_by_orders(problem, placement, edge)) << "seed " << seed;
      ASSERT_EQ(per_device, per_device_by_triples(problem, placement, path)) << "seed " << seed;
      ASSERT_TRUE(per_device || !jointly) << "joint contiguity is the stronger one";
      ++(jointly ? joint : per_device ? convex_only : neither);
    }
  }
  EXPECT_GT(joint, 50);
  EXPECT_GT(convex_only, 5);
  EXPECT_GT(neither, 50);
  EXPECT_GT(orphans, 50);
}

// Two chains crossed over two devices: each set is convex, but each waits for the other.
TEST(Contiguity, TheRuleDecides) {
  const auto crossed = [](Contiguity rule) {
    ProblemDraft draft;
    draft.objective = Objective::throughput;
    draft.cluster.interconnect = InterconnectKind::host;
    draft.cluster.kinds = {{"acc", false}};
    draft.cluster.devices = {device_record("a", KindId{0}), device_record("b", KindId{0})};
    draft.models = {model_record("model")};
    for (const char* name : {"u", "v", "x", "y"}) draft.ops.push_back(op_record(name, {1}));
    draft.tensors = {tensor_record(OpId{0}, {OpId{1}}), tensor_record(OpId{2}, {OpId{3}})};
    draft.rules.contiguity = rule;
    const Problem problem(std::move(draft));
    const DeviceId a{0};
    const DeviceId b{1};
    return contiguous(problem, Placement(std::vector<DeviceId>{a, b, b, a}));
  };
  EXPECT_TRUE(crossed(Contiguity::none));
  EXPECT_TRUE(crossed(Contiguity::per_device));
  EXPECT_FALSE(crossed(Contiguity::joint));
}

// Forward u -> v, backward x -> y -> z; v is with x, u with z, y is alone. Turned round, y stands
// between u and v.
TEST(Contiguity, AnOrphanIsAskedToo) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"acc", false}};
  draft.cluster.devices = {device_record("a", KindId{0}), device_record("b", KindId{0})};
  draft.models = {model_record("model")};
  draft.ops = {op_record("u", {1}), op_record("v", {1}), op_record("x", {1}, 0, true),
               op_record("y", {1}, 0, true), op_record("z", {1}, 0, true)};
  for (std::size_t i = 0; i < 4; ++i) {
    draft.tensors.push_back(tensor_record(OpId{i}, {OpId{i + 1}}));
  }
  draft.colocated = {{OpId{1}, OpId{2}}, {OpId{0}, OpId{4}}};
  const Problem problem(std::move(draft));
  const DeviceId a{0};
  const DeviceId b{1};
  const Placement apart(std::vector<DeviceId>{a, a, a, b, a});
  EXPECT_FALSE(jointly_contiguous(problem, apart));
  EXPECT_FALSE(per_device_contiguous(problem, apart));
  const Placement with_u(std::vector<DeviceId>{a, b, b, a, a});
  EXPECT_TRUE(jointly_contiguous(problem, with_u));
  EXPECT_TRUE(per_device_contiguous(problem, with_u));
}

TEST(Contiguity, MoreDevicesThanBitsInAWord) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"acc", false}};
  draft.models = {model_record("model")};
  constexpr std::size_t kCount = 130;
  for (std::size_t i = 0; i < kCount; ++i) {
    draft.cluster.devices.push_back(device_record("d" + std::to_string(i), KindId{0}));
    draft.ops.push_back(op_record("op" + std::to_string(i), {1}));
    if (i > 0) draft.tensors.push_back(tensor_record(OpId{i - 1}, {OpId{i}}));
  }
  const Problem problem(std::move(draft));
  Placement placement(kCount);
  for (const OpId op : problem.ops()) placement[op] = DeviceId{kCount - 1 - op.index()};
  EXPECT_TRUE(per_device_contiguous(problem, placement));
  EXPECT_TRUE(jointly_contiguous(problem, placement));
  placement[OpId{kCount - 1}] = placement[OpId{0}];
  EXPECT_FALSE(per_device_contiguous(problem, placement));
  EXPECT_FALSE(jointly_contiguous(problem, placement));
}

}  // namespace
}  // namespace placewright
