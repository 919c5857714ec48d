#include "planners/training/micro_batch_shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace placewright {
namespace {

struct Share {
  double slot = 0;
  int most = 0;  // micro-batches
  int taken = 1;
};

// Micro-batches with which the replica is done by `moment`.
int done_by(const Share& share, double moment) {
  if (share.slot <= 0) return share.most;
  const double count = std::floor(moment / share.slot) + 1;
  return count >= share.most ? share.most : static_cast<int>(count);
}

bool distribute(std::vector<Share>& shares, int micro_batches) {
  long long most = 0;
  double latest = 0;
  for (const Share& share : shares) {
    if (share.most < 1 || !std::isfinite(share.slot)) return false;
    most += share.most;
    latest = std::max(latest, share.slot * micro_batches);
  }
  if (most < micro_batches || shares.size() > static_cast<std::size_t>(micro_batches)) return false;
  if (shares.size() == 1) {
    shares.front().taken = micro_batches;
    return true;
  }
  // Invariant: what is done by `early` is too little.
  double early = 0;
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (early + latest) / 2;
    long long done = 0;
    for (const Share& share : shares) done += done_by(share, middle);
    (done < micro_batches ? early : latest) = middle;
  }
  long long left = micro_batches;
  for (Share& share : shares) {
    share.taken = early > 0 ? done_by(share, early) : 1;
    left -= share.taken;
  }
  for (; left > 0; --left) {
    const auto next = std::ranges::min_element(shares, {}, [](const Share& share) {
      return share.taken == share.most ? kInfinity : share.slot * share.taken;
    });
    next->taken += 1;
  }
  return true;
}

// The most micro-batches that the replica may take.
int most_in_memory(const StepModel& model, const TrainingPlan& plan, std::size_t s,
                   const StageReplica& replica, int micro_batches) {
  const TrainingProblem& problem = model.problem();
  const TrainingStage& stage = plan.stages[s];
  const double memory = problem.kinds[problem.pools[replica.pool].kind].memory;
  const int depth = static_cast<int>(plan.stages.size() - s);
  const auto fits = [&](int in_flight) {
    return model.memory(replica.degree, plan.micro_batch, stage.first, stage.last, in_flight) <=
           memory;
  };
  if (fits(std::min(depth, micro_batches))) return micro_batches;
  int most = 0;
  while (fits(most + 1)) ++most;
  return most;
}

}  // namespace

double share_out(const StepModel& model, TrainingPlan& plan) {
  const int micro_batches = model.problem().batch / plan.micro_batch;
  for (TrainingStage& stage : plan.stages) {
    for (StageReplica& replica : stage.replicas) replica.micro_batches = 1;
  }
  const StepCost alone = model.cost(plan);
  double steady = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    std::vector<StageReplica>& replicas = plan.stages[s].replicas;
    std::vector<Share> shares;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      shares.push_back({alone.stages[s].replicas[r].slot(),
                        most_in_memory(model, plan, s, replicas[r], micro_batches)});
    }
    if (!distribute(shares, micro_batches)) return kInfinity;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      replicas[r].micro_batches = shares[r].taken;
      steady = std::max(steady, (shares[r].taken - 1) * shares[r].slot);
    }
  }
  return model.value_of(alone.seconds + steady, plan);
}

}  // namespace placewright
