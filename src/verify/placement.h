// What holds for every placement, whatever the objective: devices, pins, colocation, links,
// weights.

#pragma once

#include <span>
#include <vector>

#include "problem/problem.h"
#include "verify/findings.h"

namespace placewright::verifying {

// Answers whether times and transfers of the placement are all defined: every op has a device that
// supports it and every tensor can reach its readers. Nothing else can be judged otherwise.
bool check_placement(const Problem& problem, const Placement& placement, Findings& findings);

// The ops whose weights a memory space holds.
struct ResidentSet {
  SpaceId space;
  std::span<const OpId> ops;
};

// Weights of a set of ops; what several of them share counts once.
double resident_bytes(const Problem& problem, std::span<const OpId> ops);

// Answers whether they fit.
bool check_resident_memory(const Problem& problem, const ResidentSet& set, Findings& findings);

bool fits(double bytes, double memory);

Table<DeviceId, std::vector<OpId>> ops_by_device(const Problem& problem,
                                                 const Placement& placement);
Table<SpaceId, std::vector<OpId>> ops_by_space(const Problem& problem, const Placement& placement);
Table<SpaceId, std::vector<DeviceId>> devices_by_space(const Problem& problem);

}  // namespace placewright::verifying
