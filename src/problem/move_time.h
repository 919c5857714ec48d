// How long a tensor takes from one device to another when nothing is in the way.

#pragma once

#include "problem/problem.h"

namespace placewright {

// The link, or out to the host and in again; 0 within one memory space, infinite if there is no
// link.
inline double move_time(const Problem& problem, TensorId tensor, DeviceId from, DeviceId to) {
  if (problem.same_space(from, to)) return 0;
  if (problem.interconnect() == InterconnectKind::links) {
    return problem.link_time(tensor, from, to);
  }
  const int legs = (problem.on_host(from) ? 0 : 1) + (problem.on_host(to) ? 0 : 1);
  return legs * problem.host_time(tensor);
}

}  // namespace placewright
