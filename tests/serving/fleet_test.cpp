#include "serving/fleet.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "serving/fleet_file.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

FleetModel model(const std::string& name, double rate, double memory, std::vector<double> times) {
  return {.name = name, .rate = rate, .memory = memory, .times = std::move(times)};
}

double load_of(const FleetPlan& plan, std::size_t node) {
  double load = 0;
  for (const FleetReplica& replica : plan.replicas) {
    if (replica.node != plan.demand.nodes[node].name) continue;
    const auto found = std::ranges::find(plan.demand.models, replica.model, &FleetModel::name);
    load += replica.rate * found->times[node] / 1000;
  }
  return load;
}

// What a plan promises, whatever the demand was.
void check(const FleetPlan& plan) {
  const FleetDemand& demand = plan.demand;
  for (std::size_t node = 0; node < demand.nodes.size(); ++node) {
    double memory = 0;
    for (const FleetReplica& replica : plan.replicas) {
      if (replica.node != demand.nodes[node].name) continue;
      memory += std::ranges::find(demand.models, replica.model, &FleetModel::name)->memory;
    }
    EXPECT_LE(memory, demand.nodes[node].memory * (1 + 1e-6));
    EXPECT_NEAR(load_of(plan, node), plan.loads[node], 1e-6);
    EXPECT_LE(plan.loads[node], plan.load + 1e-12);
  }
  for (const FleetModel& each : demand.models) {
    double rate = 0;
    for (const FleetReplica& replica : plan.replicas) {
      if (replica.model == each.name) rate += replica.rate;
    }
    EXPECT_NEAR(rate, each.rate, 1e-6 * each.rate);
  }
  EXPECT_LE(plan.lower_bound, plan.load * (1 + 1e-6));
}

// The least largest load where each model has one of two nodes, or both in halves, thirds, ...:
// no plan of those may be below the bound.
double least_of_a_grid(const FleetDemand& demand) {
  constexpr int kParts = 6;
  double least = kInfinity;
  int choices = 1;
  for (std::size_t i = 0; i < demand.models.size(); ++i) choices *= kParts + 1;
  for (int choice = 0; choice < choices; ++choice) {
    std::array<double, 2> load{};
    std::array<double, 2> memory{};
    int rest = choice;
    for (const FleetModel& each : demand.models) {
      const double first = static_cast<double>(rest % (kParts + 1)) / kParts;
      rest /= kParts + 1;
      const std::array share{first, 1 - first};
      for (std::size_t node = 0; node < 2; ++node) {
        if (share[node] == 0) continue;
        load[node] += share[node] * each.rate * each.times[node] / 1000;
        memory[node] += each.memory;
      }
    }
    if (memory[0] > demand.nodes[0].memory || memory[1] > demand.nodes[1].memory) continue;
    least = std::min(least, std::max(load[0], load[1]));
  }
  return least;
}

TEST(Fleet, IsNotWorseThanAnyPlanOfAGrid) {
  std::mt19937_64 random(7);
  const auto draw = [&](double least, double most) {
    return std::uniform_real_distribution(least, most)(random);
  };
  int planned = 0;
  for (int round = 0; round < 60; ++round) {
    FleetDemand demand{.most_load = 1e6, .nodes = {{.name = "a"}, {.name = "b"}}};
    for (FleetNode& node : demand.nodes) node.memory = draw(1, 3);
    for (const char* name : {"x", "y", "z"}) {
      demand.models.push_back(model(name, draw(1, 20), draw(0.3, 1.2), {draw(1, 40), draw(1, 40)}));
    }
    const double least = least_of_a_grid(demand);
    const FleetPlan plan = plan_fleet(demand);
    EXPECT_EQ(plan.has_replicas(), least < kInfinity);
    if (!plan.has_replicas()) continue;
    ++planned;
    check(plan);
    EXPECT_LE(plan.load, least * 1.0011);
    EXPECT_LE(plan.lower_bound, least * (1 + 1e-9));
    EXPECT_GE(plan.lower_bound, plan.load * 0.99);
  }
  EXPECT_GT(planned, 20);
}

TEST(Fleet, HasNoMoreReplicasThanTheLoadNeeds) {
  const FleetDemand demand{.nodes = {{.name = "a"}, {.name = "b"}},
                           .models = {model("x", 10, 1, {10, 10}), model("y", 10, 1, {10, 10})}};
  const FleetPlan plan = plan_fleet(demand);
  check(plan);
  EXPECT_EQ(plan.replicas.size(), 2U);
  EXPECT_NEAR(plan.load, 0.1, 1e-3);
}

TEST(Fleet, ReplicatesWhatOneNodeCannotServe) {
  const FleetDemand demand{.nodes = {{.name = "a"}, {.name = "b"}, {.name = "c"}},
                           .models = {model("x", 150, 1, {10, 10, kInfinity})}};
  const FleetPlan plan = plan_fleet(demand);
  check(plan);
  EXPECT_TRUE(plan.obstacle.empty()) << plan.obstacle;
  EXPECT_EQ(plan.replicas.size(), 2U);
  EXPECT_NEAR(plan.lower_bound, 0.75, 1e-6);
}

TEST(Fleet, LeavesLoadForAnObjective) {
  FleetDemand demand{.nodes = {{.name = "a"}, {.name = "slow"}},
                     .models = {model("x", 20, 1, {5, 5}), model("y", 10, 1, {40, 40})}};
  demand.models[0].objective = 25;
  const FleetPlan plan = plan_fleet(demand);
  check(plan);
  EXPECT_TRUE(plan.obstacle.empty()) << plan.obstacle;
  for (const FleetReplica& replica : plan.replicas) EXPECT_GE(replica.in_time.value_or(1), 0.99);
}

TEST(Fleet, SaysWhyThereIsNoPlan) {
  FleetDemand demand{.nodes = {{.name = "a", .memory = 2}, {.name = "b", .memory = 2}},
                     .models = {model("x", 10, 3, {10, 10})}};
  EXPECT_THAT(plan_fleet(demand).obstacle, HasSubstr("no node can serve 'x'"));
  demand.models = {model("x", 1, 1.5, {1, 1}), model("y", 1, 1.5, {1, 1}),
                   model("z", 1, 1.5, {1, 1})};
  EXPECT_THAT(plan_fleet(demand).obstacle, HasSubstr("the memory of the nodes"));
  demand.models = {model("x", 1000, 1, {10, 10})};
  const FleetPlan overloaded = plan_fleet(demand);
  EXPECT_THAT(overloaded.obstacle, HasSubstr("the largest load of a node is 5"));
  check(overloaded);
}

TEST(FleetFile, ReadsBackWhatItWrites) {
  FleetDemand demand{
      .most_load = 0.7,
      .nodes = {{.name = "a", .kind = "k", .speed = 2, .memory = 5, .cores = 3}, {.name = "b"}},
      .models = {model("x", 10, 1, {10, kInfinity})}};
  demand.models[0].objective = 90;
  demand.models[0].path = "/x.onnx";
  const FleetPlan plan = plan_fleet(demand);
  const std::string text = fleet_text(plan);
  EXPECT_TRUE(is_fleet(text, "fleet.json"));
  FleetPlan again = plan;
  again.demand = parse_fleet(text, "fleet.json");
  EXPECT_EQ(fleet_text(again), text);
}

TEST(FleetFile, SaysWhereItIsWrong) {
  const auto message = [](const std::string& nodes) {
    try {
      parse_nodes(R"({"placewright": "nodes", "version": 1, "nodes": )" + nodes + "}", "n.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("[]"), HasSubstr("the list is empty"));
  EXPECT_THAT(message(R"([{"name": "a"}, {"name": "a"}])"), HasSubstr("/nodes/1/name"));
  EXPECT_THAT(message(R"([{"name": "a", "speed": 0}])"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(message(R"([{"name": "a", "memory": "5us"}])"), HasSubstr("/nodes/0/memory"));
  EXPECT_EQ(message(R"([{"name": "a", "memory": "2GiB", "cores": 4}])"), "");
}

}  // namespace
}  // namespace placewright
