// The flow of a layer: from nothing, and after one change. 64 ops and 8 devices are a wide layer;
// the figures to keep are 100 us for a solve and 20 us for a change.

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "planners/flow/layer_flow.h"
#include "solvers/min_cost_flow.h"

namespace placewright {
namespace {

struct Layer {
  std::vector<std::int64_t> capacity;
  std::vector<std::vector<double>> costs;
};

// Minus the weighted speed-ups, from 0.1 to 100; the last place is "later".
std::vector<double> random_costs(std::mt19937_64& random, std::size_t places) {
  std::uniform_real_distribution<double> exponent(-1, 2);
  std::vector<double> costs;
  for (std::size_t i = 0; i < places; ++i) costs.push_back(-std::pow(10, exponent(random)));
  return costs;
}

Layer layer_of(std::size_t ops, std::size_t devices) {
  std::mt19937_64 random(3);
  Layer layer;
  layer.capacity.assign(devices, 4);
  layer.capacity.push_back(LayerFlow::kUnlimited);
  for (std::size_t i = 0; i < ops; ++i) layer.costs.push_back(random_costs(random, devices + 1));
  return layer;
}

void solve_from_nothing(benchmark::State& state) {
  const Layer layer =
      layer_of(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) {
    LayerFlow flow(layer.capacity);
    for (const auto& costs : layer.costs) benchmark::DoNotOptimize(flow.add(costs));
    benchmark::DoNotOptimize(flow.cost());
  }
}
BENCHMARK(solve_from_nothing)->Args({16, 4})->Args({64, 8})->Args({256, 8});

void change_the_costs_of_one_op(benchmark::State& state) {
  const Layer layer =
      layer_of(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  LayerFlow flow(layer.capacity);
  for (const auto& costs : layer.costs) (void)flow.add(costs);
  std::mt19937_64 random(5);
  std::vector<std::vector<double>> others;
  for (int i = 0; i < 251; ++i) others.push_back(random_costs(random, layer.capacity.size()));
  std::size_t turn = 0;
  for (auto _ : state) {
    flow.set_costs(turn % layer.costs.size(), others[turn % others.size()]);
    ++turn;
  }
}
BENCHMARK(change_the_costs_of_one_op)->Args({16, 4})->Args({64, 8})->Args({256, 8});

void an_op_comes_and_one_goes(benchmark::State& state) {
  const Layer layer = layer_of(64, 8);
  LayerFlow flow(layer.capacity);
  for (const auto& costs : layer.costs) (void)flow.add(costs);
  std::size_t turn = 0;
  for (auto _ : state) {
    flow.remove(turn % 64);
    benchmark::DoNotOptimize(flow.add(layer.costs[(turn + 7) % 64]));
    ++turn;
  }
}
BENCHMARK(an_op_comes_and_one_goes);

void solve_by_lemon(benchmark::State& state) {
  const Layer layer = layer_of(64, 8);
  solvers::FlowNetwork network;
  network.supply.assign(64 + 9 + 1, 0);
  for (int op = 0; op < 64; ++op) {
    network.supply[static_cast<std::size_t>(op)] = 1;
    for (int place = 0; place < 9; ++place) {
      network.arcs.push_back(
          {.source = op,
           .target = 64 + place,
           .capacity = 1,
           .cost = layer.costs[static_cast<std::size_t>(op)][static_cast<std::size_t>(place)]});
    }
  }
  for (int place = 0; place < 9; ++place) {
    network.arcs.push_back(
        {.source = 64 + place, .target = 73, .capacity = place < 8 ? 4 : 64, .cost = 0});
  }
  network.supply[73] = -64;
  for (auto _ : state) benchmark::DoNotOptimize(solvers::min_cost_flow(network).cost);
}
BENCHMARK(solve_by_lemon);

}  // namespace
}  // namespace placewright
