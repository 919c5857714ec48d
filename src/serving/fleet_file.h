// Files of fleets: nodes as they are given, and plans as they are written and read again.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.h"
#include "serving/fleet.h"

namespace placewright {

struct NodesFile {
  std::vector<FleetNode> nodes;
  std::vector<std::string> warnings;
};

// Throws InputError.
NodesFile parse_nodes(std::string_view text, const std::string& path);

bool is_fleet(std::string_view text, const std::string& path);
// Throws InputError. What the plan says of loads and latencies is left out.
FleetDemand parse_fleet(std::string_view text, const std::string& path);
std::string fleet_text(const FleetPlan& plan);

// The models of a problem with their times on the nodes; rates and objectives are still to be set.
// Throws std::invalid_argument for a kind that there is not, and for times without a unit.
std::vector<FleetModel> fleet_models(const Problem& problem, const std::vector<FleetNode>& nodes);

}  // namespace placewright
