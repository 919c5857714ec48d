// Which models run on which nodes of a fleet, with how many replicas, for stated rates of requests.
//
// A node runs its replicas all at once, and each gets a part of its model's requests. A node's load
// is the share of the time that its requests need. The plan has the least largest load of a node,
// and among plans of (nearly) that load the fewest replicas. Both are mixed-integer programs:
//
//   least L   with   sum_n r[m,n] = 1,   r[m,n] <= x[m,n] in {0, 1},
//                    sum_m memory[m] x[m,n] <= memory[n],   sum_m rate[m] time[m,n] r[m,n] <= L.
//
// The bound of the first one holds for every plan. Latencies are then simulated, node by node
// (simulation.h). Where a model misses its objective on a node, that node may only take the model
// with less load, and the programs are solved again. So objectives are met by a rule of thumb, and
// the bound does not know them.

#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace placewright {

struct FleetNode {
  std::string name;
  std::string kind = {};  // of device, or a device, whose times count here; empty: the fastest
  double speed = 1;       // divides the times
  double memory = std::numeric_limits<double>::infinity();  // bytes
  int cores = 0;  // that a replica is told to use; 0: all of the node
};

struct FleetModel {
  std::string name;
  std::string path = {};                 // of its file; empty: unknown
  double rate = 0;                       // requests a second
  double memory = 0;                     // bytes of a replica
  std::optional<double> objective = {};  // milliseconds, for 99 % of the requests
  std::vector<double> times = {};        // by node, milliseconds; infinite where it cannot run
};

struct FleetDemand {
  double most_load = 0.9;  // of a node
  std::vector<FleetNode> nodes;
  std::vector<FleetModel> models;
};

struct FleetReplica {
  std::string model;
  std::string node;
  double rate = 0;  // requests a second
  // Simulated: milliseconds, and the share of requests within the objective.
  double mean = 0;
  double p99 = 0;
  std::optional<double> in_time = {};
};

struct FleetPlan {
  FleetDemand demand;
  std::vector<FleetReplica> replicas;
  std::vector<double> loads;  // by node
  double load = 0;            // the largest
  double lower_bound = 0;     // no plan has a smaller largest load
  std::string obstacle = {};  // why there is no plan that meets everything; empty: there is
  bool has_replicas() const { return !replicas.empty(); }
};

struct FleetOptions {
  double time_seconds = 10;  // for each program
  int rounds = 10;           // of solving again for objectives
};

FleetPlan plan_fleet(const FleetDemand& demand, const FleetOptions& options = {});

}  // namespace placewright
