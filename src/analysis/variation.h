// The same problem with other numbers: more memory, faster links, fewer devices.
//
// Each function takes a draft and hands back the changed one. A factor of 1 changes nothing.
// Whether the result is a problem at all (an op may have lost its only device) is for Problem to
// say.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "problem/draft.h"

namespace placewright {

// Times `factor`: the memory of every device, or of one, with those that share its space.
ProblemDraft with_memory(ProblemDraft draft, double factor);
ProblemDraft with_memory(ProblemDraft draft, DeviceId device, double factor);

// Times `factor`: the bandwidth of every link, or of one direction. Latencies stay. Transfer times
// that the problem states (tables, host times) are divided by the factor as a whole.
ProblemDraft with_bandwidth(ProblemDraft draft, double factor);
ProblemDraft with_bandwidth(ProblemDraft draft, DeviceId from, DeviceId to, double factor);

// Times `factor`: how fast every device runs ops, or one device (which gets a kind of its own).
ProblemDraft with_speed(ProblemDraft draft, double factor);
ProblemDraft with_speed(ProblemDraft draft, DeviceId device, double factor);

// These ops may not run on the device, which gets a kind of its own where others share its kind.
ProblemDraft with_forbidden(ProblemDraft draft, const std::vector<std::size_t>& ops,
                            DeviceId device);

// How many times as long an op takes on a kind with so many samples as with one.
using BatchGrowth = std::function<double(OpId, KindId, double samples)>;

// `factor` samples at a time: tensors are that much larger, and ops take as much longer as `growth`
// says, or that much where it is empty; latencies, overheads and weights stay as they are.
ProblemDraft with_batch(ProblemDraft draft, double factor, const BatchGrowth& growth = {});

// Only these devices, in their order. Throws std::invalid_argument when there are none, or an op is
// pinned to a device that is gone.
ProblemDraft with_devices(ProblemDraft draft, const std::vector<std::size_t>& kept);

// One more device like this one, with the links that it has; the two are joined as the device and
// another of its node, else of its kind, else any. Throws std::invalid_argument where the device
// shares resources, or is joined to none.
ProblemDraft with_copy_of(ProblemDraft draft, DeviceId device);

// Every link has this cost; where devices state nodes, every link inside a node. Throws
// std::invalid_argument where no transfer time comes from a link.
ProblemDraft with_links(ProblemDraft draft, double latency, double bandwidth);

// Whether the devices share one memory, so that a copy of one needs no links.
bool are_in_one_memory(const Cluster& cluster);

// Whether the devices are sets of resources, as of cores, in one memory; or in several that are
// joined by links, where each has resources of its own, of one sort.
bool are_sets_of_resources(const Cluster& cluster);

// How many devices `with_device_count` counts: the accelerators of a host interconnect, else all.
// Where every device is a set of shared resources, as of cores, it counts those.
std::size_t countable_devices(const ProblemDraft& draft);

// What it counts, as people say it: "core" of resources called "core 0", "core 1", …; "accelerator"
// of a host interconnect; else "device".
std::string countable_word(const Cluster& cluster);

// The first `count` of them (host devices stay; of resources the sets within the first `count`).
// More than there are: copies of the last accelerator, behind all devices, where a copy needs no
// links; of resources in one memory copies of the sets that fit, so that the sets do not become
// wider: nobody knows the times of wider ones. Where no sets have just that many resources, as many
// as they have. A limit of replicas that is just the number of resources, as a profile states it,
// follows their number; another one stays. Throws std::invalid_argument when `count` is 0, too
// large, or an op is pinned to a device that is gone.
ProblemDraft with_device_count(ProblemDraft draft, std::size_t count);

}  // namespace placewright
