// CallGraph: a call-latency problem as plain arrays, with small ops left out where there are too
// many down-sets.
//
// Nodes are ops in topological order; accelerators that no plan can tell apart form a class.
// Colocated ops become one node where that changes no plan's value. With one call per device they
// are in the same call or all on the host, and there an op joins the only one that it waits for, or
// the only one that waits for it, if it takes no time or neither has other such neighbours. With
// several calls only sources and sinks that take no time anywhere join their one neighbour: being
// in its call costs nothing, and the memory is that of the same device.
//
// With every op in it and one call per device the graph is the problem itself. It becomes a
// relaxation (every plan of the problem is one of the graph, at no greater latency) by
//
//   leaving ops out        a plan without some of its ops is still a plan: calls get shorter and
//                          nothing waits for more than before; memory of ops left out is not
//                          counted. What one of them had to wait for, those behind it still wait
//                          for: an order without a tensor
//   several calls          each call is taken for a device of its own: memory that calls of one
//                          device share, their waiting for each other and colocation are dropped
//   shared weights         are not counted, nor is memory of the host
//
// so a lower bound for the graph is one for the problem.

#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace placewright {

struct CallGraph {
  using Node = std::uint32_t;

  // Accelerators of equal kind, memory and overheads; one with ops pinned to it stands alone.
  struct AcceleratorClass {
    std::vector<DeviceId> devices;
    double memory = kInfinity;
    std::size_t calls = 1;     // all devices together
    std::vector<double> time;  // by node; kInfinity: not there
    // By net: what a call that reads or sends it takes for that, its overhead included.
    std::vector<double> in;
    std::vector<double> out;
  };

  struct Net {
    Node producer = 0;
    std::vector<Node> consumers;
    bool moves = true;  // false: no tensor, only an order that ops left out make
  };

  std::vector<std::vector<OpId>> ops;  // by node
  std::vector<double> host_time;       // kInfinity: not there
  std::vector<double> memory;
  std::vector<AcceleratorClass> classes;
  std::vector<Net> nets;                  // with at least one consumer in another node
  std::vector<std::vector<Node>> groups;  // colocated, two or more; one call per device only
  bool relaxed = false;

  [[nodiscard]] std::size_t size() const { return ops.size(); }
  // Sum of the least times of its nodes.
  [[nodiscard]] double least_work() const;
};

// `keep` by op. Fewer calls per device than the problem allows make a restriction of it: its plans
// are plans of the problem.
CallGraph call_graph(const Problem& problem, const Table<OpId, char>& keep, int calls_per_device);

// Which ops are left when sources and sinks of weight up to `threshold` are taken away, again and
// again. The weight of an op is what leaving it out may cost: its least time and a tenth of its
// transfer times as shares of the longest path, and its memory as a (small) share of an
// accelerator's. Threshold below zero: all ops.
Table<OpId, char> ops_above(const Problem& problem, double threshold);

// So many ops of the greatest weight, wherever they are. In wide graphs these are few where almost
// all of the work is, while sources and sinks soon become too large to leave out.
Table<OpId, char> heaviest_ops(const Problem& problem, std::size_t count);

}  // namespace placewright
