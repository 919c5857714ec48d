// Names of resources as people say them: "cores 0-3", not "core 0, core 1, core 2, core 3".

#pragma once

#include <span>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace placewright {

std::vector<std::string> resource_names(const Problem& problem,
                                        std::span<const ResourceId> resources);

// Names that differ only in a number at their end are said together, numbers that follow each other
// as a range: "core 0", "cores 0-3, 6", "cores 0-1 and gpu".
std::string resources_text(const Problem& problem, std::span<const ResourceId> resources);

// The same of what is held; behind what is not held whole, how much of it: "cores 0-1",
// "multiprocessors (33 of 132)".
std::string held_text(const Problem& problem, std::span<const ResourceUse> held);

}  // namespace placewright
