// Which layers of a model go to which host (docs/semantics.md, "Layers shared out over hosts").
//
// A dynamic program over (set of hosts in use, layers placed, layers whose experts may still come
// to this machine): the next host takes the next n layers, the experts of some of them here. It
// sees every split of the layers into runs, in every order of the hosts, so the best split is
// optimal for the measured times. This machine comes first where it has layers, because llama.cpp
// places it there. Time: 2^hosts x layers^2, times the layers where this machine's memory limits
// the experts.
//
// A layer that is slower with its experts here has them here only as far as the host's memory
// demands. The experts of a run are taken at the size of the largest layer, so that the memory of
// this machine is kept, at times with some to spare.

#pragma once

#include <span>

#include "problem/layer_split.h"

namespace placewright {

inline constexpr std::size_t kMostServingHosts = 12;

// Seconds of a token; infinite where the split does not fit the hosts' memory.
double token_seconds(const LayeredModel& model, std::span<const ServingHost> hosts,
                     const LayerSplit& split);

// The same without a look at the memory.
double token_seconds_if_it_fits(const LayeredModel& model, std::span<const ServingHost> hosts,
                                const LayerSplit& split);

// The split of the fewest seconds; empty if none fits. At most kMostServingHosts hosts.
LayerSplit best_layer_split(const LayeredModel& model, std::span<const ServingHost> hosts);

// What llama.cpp does when nobody says otherwise: every host has layers in proportion to its
// memory, which must be finite. Hosts without an endpoint have none.
LayerSplit split_by_memory(const LayeredModel& model, std::span<const ServingHost> hosts);

}  // namespace placewright
