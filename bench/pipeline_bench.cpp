// Moves per second of the pipeline evaluator, and evaluations per second of device calls, on
// published inputs. `items_per_second` counts moves (tried or made), or evaluations.

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "evaluate/calls.h"
#include "evaluate/pipeline_evaluator.h"
#include "formats/problem_file.h"

namespace placewright {
namespace {

constexpr std::size_t kMoves = 1U << 14U;

Problem published(const std::string& path, Objective objective) {
  ReadOptions options;
  options.objective = objective;
  return build_problem(
      read_problem(std::string(PLACEWRIGHT_SOURCE_DIR) + "/examples/msr/" + path, options));
}

Problem bert_training() {
  return published("throughput/OperatorGraphs/bert_l-3_training.json", Objective::throughput);
}

std::vector<DeviceId> devices_for(const Problem& problem, GroupId group) {
  std::vector<DeviceId> allowed;
  for (const DeviceId device : problem.devices()) {
    if (problem.group_allowed(group, device)) allowed.push_back(device);
  }
  return allowed;
}

template <class Noun>
Noun noun_of(const Problem& problem, std::size_t index);

template <>
OpId noun_of<OpId>(const Problem& problem, std::size_t index) {
  return OpId{index % problem.op_count()};
}

template <>
GroupId noun_of<GroupId>(const Problem& problem, std::size_t index) {
  return GroupId{index % problem.group_count()};
}

GroupId group_of(const Problem& problem, OpId op) {
  return problem.group(op);
}
GroupId group_of(const Problem&, GroupId group) {
  return group;
}

Placement random_placement(const Problem& problem) {
  std::mt19937_64 random(2);
  Placement placement(problem.op_count());
  for (const GroupId group : problem.groups()) {
    const auto allowed = devices_for(problem, group);
    const DeviceId device = allowed[random() % allowed.size()];
    for (const OpId op : problem.group_ops(group)) placement[op] = device;
  }
  return placement;
}

template <class Noun>
struct Move {
  Noun noun;
  DeviceId to;
};

// A random op or group and another device that may hold it.
template <class Noun>
Move<Noun> random_move(const Problem& problem, const PipelineEvaluator& evaluator,
                       std::mt19937_64& random) {
  for (;;) {
    const Noun noun = noun_of<Noun>(problem, random());
    auto others = devices_for(problem, group_of(problem, noun));
    std::erase(others, evaluator.device(noun));
    if (!others.empty()) return {noun, others[random() % others.size()]};
  }
}

template <class Noun>
void try_moves(benchmark::State& state) {
  const Problem problem = bert_training();
  PipelineEvaluator evaluator(problem, random_placement(problem));
  std::mt19937_64 random(1);
  std::vector<Move<Noun>> moves;
  while (moves.size() < kMoves) moves.push_back(random_move<Noun>(problem, evaluator, random));
  for (auto _ : state) {
    for (const auto& [noun, to] : moves) {
      benchmark::DoNotOptimize(evaluator.value_if_moved(noun, to));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(moves.size()));
}
BENCHMARK(try_moves<OpId>)->Name("bert_l-3_training/try_op");
BENCHMARK(try_moves<GroupId>)->Name("bert_l-3_training/try_group");

// Random moves and then the way back, so that every move of every round leads to another device.
template <class Noun>
std::vector<Move<Noun>> there_and_back(const Problem& problem, Placement placement) {
  PipelineEvaluator evaluator(problem, std::move(placement));
  std::mt19937_64 random(1);
  std::vector<Move<Noun>> moves;
  std::vector<Move<Noun>> back;
  while (moves.size() < kMoves / 2) {
    moves.push_back(random_move<Noun>(problem, evaluator, random));
    back.push_back({moves.back().noun, evaluator.device(moves.back().noun)});
    evaluator.move(moves.back().noun, moves.back().to);
  }
  moves.insert(moves.end(), back.rbegin(), back.rend());
  return moves;
}

template <class Noun>
void make_moves(benchmark::State& state) {
  const Problem problem = bert_training();
  const auto moves = there_and_back<Noun>(problem, random_placement(problem));
  PipelineEvaluator evaluator(problem, random_placement(problem));
  for (auto _ : state) {
    for (const auto& [noun, to] : moves) {
      evaluator.move(noun, to);
      benchmark::DoNotOptimize(evaluator.value());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(moves.size()));
}
BENCHMARK(make_moves<OpId>)->Name("bert_l-3_training/move_op");
BENCHMARK(make_moves<GroupId>)->Name("bert_l-3_training/move_group");

void whole_placement(benchmark::State& state) {
  const Problem problem = bert_training();
  const Placement placement = random_placement(problem);
  for (auto _ : state) benchmark::DoNotOptimize(pipeline_value(problem, placement));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(whole_placement)->Name("bert_l-3_training/whole_placement");

// Ops in topological order, dealt out in equal runs to the slots; what is left of a slot's share
// that it cannot run goes to the host.
std::vector<CallEvaluator::Slot> runs_of_ops(const Problem& problem,
                                             const CallEvaluator& evaluator) {
  std::vector<CallEvaluator::Slot> slots(problem.op_count(), CallEvaluator::kHostSlot);
  const auto count = static_cast<std::size_t>(evaluator.slot_count() - 1);
  for (const OpId op : problem.ops()) {
    const std::size_t run = problem.topological_rank(op) * count / problem.op_count();
    const auto slot = static_cast<CallEvaluator::Slot>(1 + run);
    if (problem.allowed(op, evaluator.device(slot))) slots[op.index()] = slot;
  }
  return slots;
}

void evaluate_calls(benchmark::State& state, const std::string& path) {
  const Problem problem = published(path, Objective::call_latency);
  CallEvaluator evaluator(problem, 2);
  const auto slots = runs_of_ops(problem, evaluator);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.latency(slots));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(evaluate_calls, bert_l3, "latency/OperatorGraphs/bert_l-3_inference.json");
BENCHMARK_CAPTURE(evaluate_calls, bert_l6, "latency/OperatorGraphs/bert_l-6_inference.json");
BENCHMARK_CAPTURE(evaluate_calls, resnet50, "latency/LayerGraphs/resnet50_inference.json");

}  // namespace
}  // namespace placewright
