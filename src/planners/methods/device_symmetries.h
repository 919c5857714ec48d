// Devices that differ in name only, alone or together with others: core 0 and core 1 beside the set
// of both, or cores 0, 1 and their set against cores 2, 3 and theirs.
//
// A symmetry is an exchange of resources that takes every device to one that is alike: kind, memory
// and what shares it, overheads, links, the ops that may run there. What a plan is worth does not
// change under it, so a search needs to look at one of the plans only. Found are the symmetries
// that exchange two devices and the resources that they do not have in common; not those made of
// several.
//
// O(devices^2 (devices^2 uses + groups)), and O(devices^4 tensors) where there are several
// memories.

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

using DeviceExchange = Table<DeviceId, DeviceId>;  // what each becomes

std::vector<DeviceExchange> device_symmetries(const Problem& problem);

}  // namespace placewright
