#include "serving/fleet.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "serving/simulation.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

using solvers::Integrality;
using solvers::LinearProgram;
using solvers::LinearResult;
using solvers::LinearTerm;

constexpr double kShareInTime = 0.99;
constexpr double kNearlyTheLeast = 1.001;  // of the largest load, for fewer replicas
constexpr double kLessLoad = 0.9;          // of that with which an objective was missed
constexpr std::size_t kSimulated = 4000;   // requests of a node
constexpr std::uint64_t kSeed = 1;

// The share of a node's time that all requests of the model would take.
double whole_load(const FleetModel& model, std::size_t node) {
  return model.rate * model.times[node] / 1000;
}

bool can_run(const FleetDemand& demand, const FleetModel& model, std::size_t node) {
  return std::isfinite(model.times[node]) && model.memory <= demand.nodes[node].memory &&
         model.times[node] <= model.objective.value_or(solvers::kUnbounded);
}

// The program of fleet.h, alive between solves.
class FleetProgram {
 public:
  explicit FleetProgram(const FleetDemand& demand) : demand_(demand) {
    largest_ = program_.add_variable(0, solvers::kUnbounded, 1);
    for (const FleetModel& model : demand.models) add_model(model);
    for (std::size_t node = 0; node < demand.nodes.size(); ++node) add_node(node);
  }

  // The node takes the model only with at most this load.
  void limit(std::size_t model, std::size_t node, double load) {
    // load <= limit + (most - limit)(1 - x)
    std::vector<LinearTerm> terms = loads_on(node);
    terms.push_back({there_[model][node], demand_.most_load - load});
    program_.add_row(-solvers::kUnbounded, demand_.most_load, terms);
  }

  LinearResult least_load(double seconds) {
    program_.set_cost(largest_, 1);
    program_.set_bounds(largest_, 0, solvers::kUnbounded);
    for_each_replica([&](int there) { program_.set_cost(there, 0); });
    return program_.solve({.time_seconds = seconds, .mip_gap = 1e-6});
  }

  LinearResult fewest_replicas(const LinearResult& least, double seconds) {
    program_.set_cost(largest_, 0);
    program_.set_bounds(largest_, 0, least.objective * kNearlyTheLeast + 1e-9);
    for_each_replica([&](int there) { program_.set_cost(there, 1); });
    program_.set_start(least.values);
    return program_.solve({.time_seconds = seconds});
  }

  // Of a model's requests.
  [[nodiscard]] double share(const LinearResult& solved, std::size_t model,
                             std::size_t node) const {
    return std::clamp(solved.values[static_cast<std::size_t>(share_[model][node])], 0.0, 1.0);
  }

 private:
  void add_model(const FleetModel& model) {
    std::vector<int>& shares = share_.emplace_back();
    std::vector<int>& there = there_.emplace_back();
    std::vector<LinearTerm> all;
    for (std::size_t node = 0; node < demand_.nodes.size(); ++node) {
      const double most = can_run(demand_, model, node) ? 1 : 0;
      shares.push_back(program_.add_variable(0, most, 0));
      there.push_back(program_.add_variable(0, most, 0, Integrality::integer));
      all.push_back({shares.back(), 1});
      const std::vector<LinearTerm> only_there{{shares.back(), 1}, {there.back(), -1}};
      program_.add_row(-solvers::kUnbounded, 0, only_there);
    }
    program_.add_row(1, 1, all);
  }

  void add_node(std::size_t node) {
    std::vector<LinearTerm> load = loads_on(node);
    load.push_back({largest_, -1});
    program_.add_row(-solvers::kUnbounded, 0, load);
    if (!std::isfinite(demand_.nodes[node].memory)) return;
    std::vector<LinearTerm> memory;
    for (std::size_t model = 0; model < demand_.models.size(); ++model) {
      // As a share of the node's, so that the numbers are near 1.
      const double part = demand_.models[model].memory / std::max(demand_.nodes[node].memory, 1.0);
      if (can_run(demand_, demand_.models[model], node)) {
        memory.push_back({there_[model][node], part});
      }
    }
    program_.add_row(-solvers::kUnbounded, 1, memory);
  }

  [[nodiscard]] std::vector<LinearTerm> loads_on(std::size_t node) const {
    std::vector<LinearTerm> terms;
    for (std::size_t model = 0; model < demand_.models.size(); ++model) {
      if (!can_run(demand_, demand_.models[model], node)) continue;
      terms.push_back({share_[model][node], whole_load(demand_.models[model], node)});
    }
    return terms;
  }

  void for_each_replica(const auto& act) const {
    for (const std::vector<int>& row : there_) std::ranges::for_each(row, act);
  }

  const FleetDemand& demand_;
  LinearProgram program_;
  int largest_ = 0;
  std::vector<std::vector<int>> share_;  // by model, node
  std::vector<std::vector<int>> there_;
};

// What the requests of a node's replicas meet with, when all that are there compute at once.
void forecast_node(const FleetDemand& demand, const std::string& node, std::size_t number,
                   std::vector<FleetReplica>& replicas) {
  std::vector<ServedModel> models;
  std::vector<double> rates;
  std::vector<FleetReplica*> there;
  for (FleetReplica& replica : replicas) {
    if (replica.node != node) continue;
    const auto model = std::ranges::find(demand.models, replica.model, &FleetModel::name);
    models.push_back({.name = replica.model, .whole = model->times[number]});
    models.back().service.objective = model->objective;
    rates.push_back(replica.rate);
    there.push_back(&replica);
  }
  if (there.empty()) return;
  const auto arrivals = poisson_arrivals(rates, kSimulated, kSeed);
  const SchedulerOptions options{.policy = ServingPolicy::together, .late = Late::serve};
  const auto summaries =
      summaries_of(models, arrivals, simulate_service(models, options, arrivals));
  for (std::size_t i = 0; i < there.size(); ++i) {
    there[i]->mean = summaries[i].mean;
    there[i]->p99 = summaries[i].p99;
    there[i]->in_time = summaries[i].in_time;
  }
}

FleetPlan read_plan(const FleetDemand& demand, const FleetProgram& program,
                    const LinearResult& solved) {
  FleetPlan plan{.demand = demand, .loads = std::vector<double>(demand.nodes.size(), 0.0)};
  for (std::size_t node = 0; node < demand.nodes.size(); ++node) {
    for (std::size_t i = 0; i < demand.models.size(); ++i) {
      const FleetModel& model = demand.models[i];
      const double share = program.share(solved, i, node);
      if (share < 1e-6) continue;
      FleetReplica& replica = plan.replicas.emplace_back();
      replica.model = model.name;
      replica.node = demand.nodes[node].name;
      replica.rate = share * model.rate;
      plan.loads[node] += share * whole_load(model, node);
    }
    forecast_node(demand, demand.nodes[node].name, node, plan.replicas);
  }
  plan.load = std::ranges::max(plan.loads);
  return plan;
}

// Whether all were met; else the program knows better.
bool meets_objectives(FleetPlan& plan, FleetProgram& program) {
  bool met = true;
  for (const FleetReplica& replica : plan.replicas) {
    if (replica.in_time.value_or(1) >= kShareInTime) continue;
    const auto& nodes = plan.demand.nodes;
    const auto& models = plan.demand.models;
    const auto model = static_cast<std::size_t>(
        std::ranges::find(models, replica.model, &FleetModel::name) - models.begin());
    const auto node = static_cast<std::size_t>(
        std::ranges::find(nodes, replica.node, &FleetNode::name) - nodes.begin());
    program.limit(model, node, plan.loads[node] * kLessLoad);
    plan.obstacle = fmt::format(
        "'{}' meets its objective of {:g} ms on '{}' for {:.1f} % of the requests, not for 99 %",
        replica.model, *models[model].objective, replica.node, 100 * *replica.in_time);
    met = false;
  }
  return met;
}

std::string why_impossible(const FleetDemand& demand) {
  for (const FleetModel& model : demand.models) {
    bool somewhere = false;
    for (std::size_t node = 0; node < demand.nodes.size(); ++node) {
      somewhere = somewhere || can_run(demand, model, node);
    }
    if (!somewhere) {
      return fmt::format(
          "no node can serve '{}': it lacks the memory or the kind, or takes longer than the "
          "objective",
          model.name);
    }
  }
  return "the memory of the nodes does not hold a replica of each model";
}

}  // namespace

FleetPlan plan_fleet(const FleetDemand& demand, const FleetOptions& options) {
  FleetProgram program(demand);
  FleetPlan best{.demand = demand};
  double lower_bound = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const LinearResult least = program.least_load(options.time_seconds);
    if (round == 0) {
      lower_bound = std::max(0.0, least.dual_bound);
      if (!least.has_solution()) {
        best.obstacle = why_impossible(demand);
        return best;
      }
    }
    if (!least.has_solution() || (round > 0 && least.objective > demand.most_load)) break;
    const LinearResult fewest = program.fewest_replicas(least, options.time_seconds);
    best = read_plan(demand, program, fewest.has_solution() ? fewest : least);
    best.lower_bound = lower_bound;
    if (best.load > demand.most_load * kNearlyTheLeast) {
      best.obstacle =
          fmt::format("the largest load of a node is {:.3g}, and at most {:.3g} is wanted",
                      best.load, demand.most_load);
      return best;
    }
    if (meets_objectives(best, program)) return best;
  }
  return best;
}

}  // namespace placewright
