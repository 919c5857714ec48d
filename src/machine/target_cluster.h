// Targets of this machine as the devices of a problem.
//
// Core sets without a core in common are devices of their own: each has the share of the memory
// that goes with its cores. Until `profile` has measured the hand-over of tensors, links have the
// latency and bandwidth that are common between the cores of one processor.
//
// Where sets have cores in common, the cores are resources that the devices use, and the memory of
// the host is one space for all sets of cores.

#pragma once

#include <string>
#include <vector>

#include "machine/targets.h"
#include "problem/cluster.h"

namespace placewright {

// Devices in the order of the targets, kinds in the order in which they first occur; times in
// milliseconds. `devices` by target.
Cluster cluster_of_targets(const std::vector<Target>& targets,
                           const std::vector<RuntimeDevice>& devices);

// By kind, the number of its first device.
std::vector<std::size_t> first_of_each_kind(const Cluster& cluster);

}  // namespace placewright
