// Targets of this machine as the devices of a problem.
//
// Core sets share one memory: each has the share of it that goes with its cores. Until `profile`
// has measured the hand-over of tensors, links have the latency and bandwidth that are common
// between the cores of one processor.

#pragma once

#include <string>
#include <vector>

#include "machine/targets.h"
#include "problem/cluster.h"

namespace placewright {

// One target for each core that this process may use.
std::vector<Target> one_target_per_core();

// Reads and checks the names: each can be used here, none twice, no core in two of them. Throws
// std::invalid_argument with one sentence.
std::vector<Target> targets_named(const std::vector<std::string>& names,
                                  const std::vector<RuntimeDevice>& devices);

// Devices in the order of the targets, kinds in the order in which they first occur; times in
// milliseconds.
Cluster cluster_of_targets(const std::vector<Target>& targets,
                           const std::vector<RuntimeDevice>& devices);

// By kind, the number of its first device.
std::vector<std::size_t> first_of_each_kind(const Cluster& cluster);

}  // namespace placewright
