#include "evaluate/training_step.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace placewright {
namespace {

constexpr double kGradientBytes = 4;
constexpr double kSecondsPerHour = 3600;

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums(values.size() + 1, 0);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  return sums;
}

// The least seconds of a sample in one pass of a layer, over all measured micro-batches: what is
// left when launches no longer count.
double least_per_sample(const GpuKind& kind, int degree, std::size_t layer,
                        std::vector<double> LayerTimes::*pass) {
  double least = kInfinity;
  for (const LayerTimes& times : kind.times) {
    if (times.degree == degree) {
      least = std::min(least, (times.*pass)[layer] / times.micro_batch);
    }
  }
  return least;
}

// Seconds of a layer when `hidden` of what launches add to the work overlaps with the work.
double run_time(const GpuKind& kind, const LayerTimes& times, std::size_t layer,
                std::vector<double> LayerTimes::*pass, double hidden) {
  const double measured = (times.*pass)[layer];
  const double work = least_per_sample(kind, times.degree, layer, pass) * times.micro_batch;
  return measured - hidden * (measured - work);
}

// Bandwidth in bytes/s of one measurement; outside the range of messages that were measured (1 MB
// to 1 GB) it stays as it is at the end of the range.
double curve_at(const PoolLink& link, double bytes) {
  const double x = std::clamp(std::log2(bytes / 1e6), 0.0, 10.0);
  return std::min((link.a * x * x + link.b * x + link.c) * 1e9, link.best);
}

double hourly_price(const TrainingProblem& problem, const TrainingPlan& plan) {
  double price = 0;
  for (const TrainingStage& stage : plan.stages) {
    for (const StageReplica& replica : stage.replicas) {
      price += replica.degree * problem.kinds[problem.pools[replica.pool].kind].price;
    }
  }
  return price;
}

}  // namespace

StepModel::StepModel(const TrainingProblem& problem)
    : problem_(&problem), times_(problem.kinds.size()) {
  const double hidden = problem.constants.hidden_launches;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    const GpuKind& kind = problem.kinds[k];
    for (const LayerTimes& entry : kind.times) {
      std::vector<double> compute(problem.layers());
      for (std::size_t layer = 0; layer < compute.size(); ++layer) {
        compute[layer] = run_time(kind, entry, layer, &LayerTimes::forward, hidden) +
                         run_time(kind, entry, layer, &LayerTimes::backward, hidden);
      }
      times_[k].push_back(
          {entry.degree, entry.micro_batch, prefix_sums(compute), prefix_sums(entry.update)});
    }
  }
  for (const LayerSizes& entry : problem.sizes) {
    sizes_.push_back({entry.degree, prefix_sums(entry.parameters), prefix_sums(entry.activations)});
  }
}

const StepModel::Times* StepModel::times(std::size_t kind, int degree, int micro_batch) const {
  for (const Times& entry : times_[kind]) {
    if (entry.degree == degree && entry.micro_batch == micro_batch) return &entry;
  }
  return nullptr;
}

const StepModel::Sizes& StepModel::sizes(int degree) const {
  return *std::ranges::find(sizes_, degree, &Sizes::degree);
}

double StepModel::compute(std::size_t kind, int degree, int micro_batch, std::size_t first,
                          std::size_t last) const {
  const Times* entry = times(kind, degree, micro_batch);
  return entry == nullptr ? kInfinity : entry->compute[last] - entry->compute[first];
}

double StepModel::update(std::size_t kind, int degree, int micro_batch, std::size_t first,
                         std::size_t last) const {
  const Times* entry = times(kind, degree, micro_batch);
  return entry == nullptr ? kInfinity : entry->update[last] - entry->update[first];
}

double StepModel::memory(int degree, int micro_batch, std::size_t first, std::size_t last,
                         int in_flight) const {
  const Sizes& entry = sizes(degree);
  const TrainingConstants& constants = problem_->constants;
  const double parameters = entry.parameters[last] - entry.parameters[first];
  const double activations = entry.activations[last] - entry.activations[first];
  return constants.bytes_per_parameter * parameters +
         constants.activation_factor * activations * micro_batch * in_flight + constants.framework +
         constants.framework_per_gpu * degree;
}

double StepModel::bandwidth(std::size_t pool, std::size_t other, int gpus, double bytes) const {
  double best = 0;
  for (const PoolLink& link : problem_->links) {
    const bool joins =
        (link.from == pool && link.to == other) || (link.from == other && link.to == pool);
    if (!joins) continue;
    const double share = gpus < link.gpus ? static_cast<double>(gpus) / link.gpus : 1.0;
    best = std::max(best, share * curve_at(link, bytes));
  }
  return best;
}

double StepModel::exchange(std::size_t pool, std::size_t other, int degree, int micro_batch,
                           std::size_t last) const {
  const double bytes = problem_->sizes_of(degree)->outputs[last - 1] * micro_batch;
  return bytes > 0 ? 2 * bytes / bandwidth(pool, other, 1, bytes) : 0;
}

double StepModel::sends(const TrainingPlan& plan, std::size_t stage, std::size_t replica) const {
  const StageReplica& here = plan.stages[stage].replicas[replica];
  double seconds = 0;
  for (const std::size_t neighbour : {stage - 1, stage + 1}) {
    if (neighbour >= plan.stages.size()) continue;  // also behind -1
    const std::vector<StageReplica>& others = plan.stages[neighbour].replicas;
    const std::size_t lanes = std::min(others.size(), plan.stages[stage].replicas.size());
    const std::size_t boundary = plan.stages[std::min(stage, neighbour)].last;
    double slowest = 0;
    for (std::size_t other = replica % lanes; other < others.size(); other += lanes) {
      slowest = std::max(slowest, exchange(here.pool, others[other].pool, here.degree,
                                           plan.micro_batch, boundary));
    }
    seconds += slowest;
  }
  return seconds;
}

double StepModel::all_reduce(const TrainingStage& stage) const {
  const std::size_t count = stage.replicas.size();
  if (count < 2) return 0;
  double bytes = 0;
  int streams = stage.replicas.front().degree;
  for (const StageReplica& replica : stage.replicas) {
    const Sizes& entry = sizes(replica.degree);
    bytes = std::max(bytes, kGradientBytes * replica.degree *
                                (entry.parameters[stage.last] - entry.parameters[stage.first]));
    streams = std::min(streams, replica.degree);
  }
  double slowest = kInfinity;
  for (std::size_t i = 0; i < count; ++i) {
    const StageReplica& next = stage.replicas[(i + 1) % count];
    slowest =
        std::min(slowest, bandwidth(stage.replicas[i].pool, next.pool, streams, bytes / streams));
  }
  const double rounds = 2.0 * static_cast<double>(count - 1) / static_cast<double>(count);
  return rounds * bytes / slowest / problem_->constants.all_reduce_efficiency;
}

StageCost StepModel::stage_cost(const TrainingPlan& plan, std::size_t index) const {
  const TrainingStage& stage = plan.stages[index];
  const int depth = static_cast<int>(plan.stages.size() - index);
  StageCost cost;
  for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
    const StageReplica& replica = stage.replicas[r];
    const std::size_t kind = problem_->pools[replica.pool].kind;
    const ReplicaCost one = {
        compute(kind, replica.degree, plan.micro_batch, stage.first, stage.last),
        sends(plan, index, r),
        update(kind, replica.degree, plan.micro_batch, stage.first, stage.last),
        memory(replica.degree, plan.micro_batch, stage.first, stage.last,
               std::min(depth, replica.micro_batches))};
    cost.slot = std::max(cost.slot, one.slot());
    cost.steady = std::max(cost.steady, (replica.micro_batches - 1) * one.slot());
    cost.update = std::max(cost.update, one.update);
    cost.memory = std::max(cost.memory, one.memory);
    cost.fits = cost.fits && one.memory <= problem_->kinds[kind].memory;
    cost.replicas.push_back(one);
  }
  cost.all_reduce = all_reduce(stage);
  return cost;
}

double StepModel::value_of(double seconds, const TrainingPlan& plan) const {
  if (problem_->objective == TrainingObjective::step_time) return seconds;
  return seconds * hourly_price(*problem_, plan) / kSecondsPerHour;
}

StepCost StepModel::cost(const TrainingPlan& plan) const {
  StepCost step;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    StageCost stage = stage_cost(plan, s);
    step.fill += stage.slot;
    step.steady = std::max(step.steady, stage.steady);
    step.update = std::max(step.update, stage.update);
    step.all_reduce = std::max(step.all_reduce, stage.all_reduce);
    step.memory = std::max(step.memory, stage.memory);
    step.fits = step.fits && stage.fits;
    step.stages.push_back(std::move(stage));
  }
  step.seconds = step.fill + step.steady + step.update + step.all_reduce;
  step.price = step.seconds * hourly_price(*problem_, plan) / kSecondsPerHour;
  return step;
}

}  // namespace placewright
