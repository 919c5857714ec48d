// How a tensor gets into another memory space (docs/semantics.md, "Transfers"): by which hops, how
// long each takes, and which ports it occupies.

#pragma once

#include <algorithm>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// A part of a tensor's way. Host memory stands as a device that is not valid.
struct Hop {
  Leg leg;
  DeviceId from;
  DeviceId to;
  double length;
};

// Follows the tensor from its producer's device to a device of another space: at most two hops.
// `carry(hop, ready)` answers when a hop is over that can begin at `ready`, or what stands for
// that.
template <class Ready, class Carry>
Ready along_route(const Problem& problem, TensorId tensor, DeviceId from, DeviceId to, Ready ready,
                  const Carry& carry) {
  if (problem.interconnect() == InterconnectKind::links) {
    return carry(Hop{Leg::direct, from, to, problem.link_time(tensor, from, to)}, ready);
  }
  const double length = problem.host_time(tensor);
  if (!problem.on_host(from)) ready = carry(Hop{Leg::out, from, DeviceId{}, length}, ready);
  if (!problem.on_host(to)) ready = carry(Hop{Leg::in, DeviceId{}, to, length}, ready);
  return ready;
}

// The port of a hop or transfer at its sender and at its receiver; not valid: none.
template <class Movement>
SpaceId out_port(const Problem& problem, const Movement& movement) {
  return movement.leg == Leg::in ? SpaceId{} : problem.space(movement.from);
}
template <class Movement>
SpaceId in_port(const Problem& problem, const Movement& movement) {
  return movement.leg == Leg::out ? SpaceId{} : problem.space(movement.to);
}

// Without congestion transfers never wait for each other.
inline bool occupies_ports(const Problem& problem, double length) {
  return problem.rules().congestion && length > 0;
}

// A transfer has both of its ports from its start to its end; null: it has none there.
inline double take_ports(double ready, double length, double* out_free, double* in_free) {
  double start = ready;
  if (out_free != nullptr) start = std::max(start, *out_free);
  if (in_free != nullptr) start = std::max(start, *in_free);
  if (out_free != nullptr) *out_free = start + length;
  if (in_free != nullptr) *in_free = start + length;
  return start;
}

// When the ports of each space are free, where transfers follow one another.
struct PortTimes {
  Table<SpaceId, double> out;
  Table<SpaceId, double> in;

  explicit PortTimes(const Problem& problem)
      : out(problem.space_count(), 0), in(problem.space_count(), 0) {}

  void clear() {
    out.assign(out.size(), 0);
    in.assign(in.size(), 0);
  }

  // When a hop or transfer of that length starts, and has its ports from then on.
  template <class Movement>
  double start(const Problem& problem, const Movement& movement, double ready, double length) {
    if (!occupies_ports(problem, length)) return ready;
    double* const out_free = movement.leg == Leg::in ? nullptr : &out[problem.space(movement.from)];
    double* const in_free = movement.leg == Leg::out ? nullptr : &in[problem.space(movement.to)];
    return take_ports(ready, length, out_free, in_free);
  }
};

// The device that a transfer of the tensor into the space goes to: that of its first consumer
// there, by topological rank. The space must have one.
inline DeviceId receiving_device(const Problem& problem, const Placement& placement,
                                 TensorId tensor, SpaceId space) {
  OpId first;
  for (const OpId consumer : problem.consumers(tensor)) {
    if (problem.space(placement[consumer]) != space) continue;
    if (!first.valid() || problem.topological_rank(consumer) < problem.topological_rank(first)) {
      first = consumer;
    }
  }
  return placement[first];
}

}  // namespace placewright
