// What exact values of schedules must do when the problem changes.

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "planners/latency/latency.h"
#include "support/exact_cases.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::exact_case;
using testing::published_file;
using testing::random_draft;

// The proved value; nothing when proved infeasible.
std::optional<double> exact_value(ProblemDraft draft) {
  const Problem problem(std::move(draft));
  const PlannerEntry entry = cpsat_schedule();
  Control control(entry.name, Budget{.seconds = 30});
  const Answer answer = entry.plan(problem, Settings{entry.options}, control);
  EXPECT_TRUE(answer.status() == Status::optimal || answer.status() == Status::infeasible);
  return answer.plan ? std::optional(answer.value()) : std::nullopt;
}

void expect_same(std::optional<double> a, std::optional<double> b, double factor = 1) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_NEAR(*a * factor, *b, 3e-6 * *b);
}

// The ops in reverse order of numbers, the devices too.
ProblemDraft relabelled(ProblemDraft draft) {
  const std::size_t ops = draft.ops.size();
  const std::size_t devices = draft.cluster.devices.size();
  const auto op = [&](OpId id) { return OpId{ops - 1 - id.index()}; };
  const auto device = [&](DeviceId id) {
    return id.valid() ? DeviceId{devices - 1 - id.index()} : id;
  };
  std::reverse(draft.ops.begin(), draft.ops.end());
  std::reverse(draft.cluster.devices.begin(), draft.cluster.devices.end());
  for (Op& record : draft.ops) record.pinned_to = device(record.pinned_to);
  for (Link& link : draft.cluster.links) {
    link.from = device(link.from);
    link.to = device(link.to);
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.producer = op(tensor.producer);
    for (OpId& reader : tensor.consumers) reader = op(reader);
    std::reverse(tensor.link_times.begin(), tensor.link_times.end());
  }
  for (auto& group : draft.colocated) {
    for (OpId& member : group) member = op(member);
  }
  for (SharedWeight& weight : draft.shared_weights) {
    for (OpId& reader : weight.ops) reader = op(reader);
  }
  return draft;
}

ProblemDraft scaled(ProblemDraft draft, double factor) {
  for (Op& op : draft.ops) {
    for (double& time : op.time) time *= factor;
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.host_time *= factor;
    for (double& time : tensor.link_times) time *= factor;
    for (CutOverhead& cut : tensor.cuts) {
      cut.send *= factor;
      cut.receive *= factor;
    }
  }
  for (Link& link : draft.cluster.links) {
    link.latency *= factor;
    link.bandwidth /= factor;
  }
  for (Device& device : draft.cluster.devices) {
    device.send_overhead *= factor;
    device.receive_overhead *= factor;
  }
  for (Model& model : draft.models) model.arrival *= factor;
  return draft;
}

class ScheduleProperties : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  ProblemDraft draft() const { return random_draft(exact_case(GetParam()), GetParam()); }
};

// Which reader of a tensor pays for receiving it depends on the topological order, which names
// decide where the graph does not; so only without overheads.
TEST_P(ScheduleProperties, NamesDoNotMatter) {
  ProblemDraft plain = draft();
  for (Device& device : plain.cluster.devices) device.send_overhead = device.receive_overhead = 0;
  for (Tensor& tensor : plain.tensors) tensor.cuts.clear();
  expect_same(exact_value(plain), exact_value(relabelled(plain)));
}

TEST_P(ScheduleProperties, TimesScale) {
  expect_same(exact_value(draft()), exact_value(scaled(draft(), 37.5)), 37.5);
}

TEST_P(ScheduleProperties, ADeviceWithoutMemoryThatIsSlowChangesNothing) {
  ProblemDraft more = draft();
  for (Op& op : more.ops) op.memory = std::max(op.memory, 1.0);
  const std::optional<double> before = exact_value(more);
  Device useless = more.cluster.devices.front();
  useless.name = "useless";
  useless.memory = 0;
  const std::size_t old = more.cluster.devices.size();
  more.cluster.devices.push_back(useless);
  for (Tensor& tensor : more.tensors) {
    if (tensor.link_times.empty()) continue;
    std::vector<double> wider;
    for (std::size_t from = 0; from <= old; ++from) {
      for (std::size_t to = 0; to <= old; ++to) {
        wider.push_back(from == to               ? 0
                        : from < old && to < old ? tensor.link_times[from * old + to]
                                                 : 1);
      }
    }
    tensor.link_times = std::move(wider);
  }
  expect_same(before, exact_value(more));
}

TEST_P(ScheduleProperties, MoreMemoryNeverHurts) {
  const std::optional<double> before = exact_value(draft());
  ProblemDraft lifted = draft();
  for (Device& device : lifted.cluster.devices) device.memory = kInfinity;
  const std::optional<double> after = exact_value(lifted);
  if (!before) return;
  ASSERT_TRUE(after);
  EXPECT_LE(*after, *before * (1 + 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Cases, ScheduleProperties, ::testing::Range<std::uint64_t>(100, 130));

// 31 would be the optimum if a device sent and received through one port.
TEST(ExampleOne, TakesThirtyInBothVariants) {
  for (const bool congestion : {true, false}) {
    ProblemFile file = published_file("moirai/example-1.json", Objective::latency);
    file.draft.rules.congestion = congestion;
    const std::optional<double> value = exact_value(file.draft);
    ASSERT_TRUE(value);
    EXPECT_DOUBLE_EQ(*value, 30);
  }
}

}  // namespace
}  // namespace placewright
