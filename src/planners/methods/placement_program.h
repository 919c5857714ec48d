// PlacementProgram: throughput as an integer program over blocks and devices, for any contiguity
// rule.
//
//   x[v,d]       block v is on device d; each block on one
//   out[e,d]     host: net e leaves d          out  >= x[producer,d] - x[reader,d]
//   in[e,d]      host: net e enters d          in   >= x[reader,d] - x[producer,d]
//   move[e,a,b]  links: net e goes from a to b move >= x[producer,a] + x[reader,b] - 1
//   loads        of each device and pass, by the transfer mode, at most the objective
//                (phased: forward + backward)
//   memory       sum over v of bytes(v) x[v,d] <= memory(d), shared weights once
//   joint        contiguity: an order of the devices that all edges between blocks respect
//                before[a,b] >= x[u,a] + x[v,b] - 1   for edges u -> v
//   per device   contiguity: z[v,d] >= x[v,d], and for edges u -> v
//                z[v,d] <= z[u,d],  z[v,d] <= x[v,d] - x[u,d] + 1
//
// Devices that are alike are told apart by their first block (joint: by their place in the order).
// The program is data: `ip` hands it to HiGHS as it is, `cpsat` with whole numbers. No replicas, no
// peak memory.
//
// Reference: J. Tarnawski et al., NeurIPS 2020, section 5 (the order of devices and links are
// ours).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coarsen/blocks.h"
#include "problem/problem.h"

namespace placewright::throughput {

struct ProgramTerm {
  int variable = 0;
  double coefficient = 0;
};

// lower <= sum <= upper
struct ProgramRow {
  std::vector<ProgramTerm> terms;
  double lower = -kInfinity;
  double upper = kInfinity;
  bool whole = true;  // all coefficients are small whole numbers; else they are times or bytes
  bool bytes = false;
};

class PlacementProgram {
 public:
  // The problem must outlive the program. `highest`: no plan of interest is above it.
  PlacementProgram(const Problem& problem, double highest);

  // Variables 0 .. whole_count-1 are 0/1 or, for places in the order, 0 .. devices-1; the last ones
  // are the objective's parts (one, or forward and backward), not negative and at most `highest`.
  struct Variable {
    int upper = 1;
  };
  [[nodiscard]] const std::vector<Variable>& variables() const { return variables_; }
  [[nodiscard]] const std::vector<int>& objective() const { return objective_; }
  [[nodiscard]] const std::vector<ProgramRow>& rows() const { return rows_; }
  [[nodiscard]] double highest() const { return highest_; }
  [[nodiscard]] std::size_t block_count() const { return blocks_.size(); }

  // The placement in values of x. Nullopt if a block is on no device.
  [[nodiscard]] std::optional<Placement> placement(const std::vector<double>& values) const;
  // Values of all x for a placement, the rest unset (NaN); nullopt if it splits a block. Like
  // devices are renamed to fit the program's rules.
  [[nodiscard]] std::optional<std::vector<double>> start(const Placement& placement) const;

 private:
  int add(int upper = 1);
  int& x(std::size_t block, DeviceId device) {
    return x_[block * problem_->device_count() + device.index()];
  }
  [[nodiscard]] int x(std::size_t block, DeviceId device) const {
    return x_[block * problem_->device_count() + device.index()];
  }
  void add_choices();
  void add_memory();
  void add_joint_order();
  void add_own_contiguity();
  void add_nets();
  void add_host_net(TensorId tensor);
  void add_link_net(TensorId tensor);
  void add_loads();

  // Terms of a device's load in one pass.
  struct Load {
    std::vector<ProgramTerm> compute;
    std::vector<ProgramTerm> in;
    std::vector<ProgramTerm> out;
  };
  [[nodiscard]] Load& load(DeviceId device, bool backward) {
    return loads_[device.index() * 2 + (backward && phased_ ? 1 : 0)];
  }

  const Problem* problem_;
  Blocks blocks_;
  bool phased_;
  double highest_;
  std::vector<Variable> variables_;
  std::vector<int> x_;  // -1: not allowed
  std::vector<int> objective_;
  std::vector<ProgramRow> rows_;
  std::vector<Load> loads_;
};

// Why the program cannot state the problem; empty: it can.
inline constexpr Features kProgramKnows =
    kCommonFeatures - Features{Feature::replicas, Feature::peak_memory};

// About how many rows the program would have, without building it.
double estimated_rows(const Problem& problem);

// Blocks that the rule allows to move as one: for joint contiguity as blocks_of, without contiguity
// and for per-device groups; dominated ones merged where that is sound.
Blocks program_blocks(const Problem& problem);

}  // namespace placewright::throughput
