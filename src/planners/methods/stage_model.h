// StageModel: what a set of blocks costs as one stage of a pipeline, for planners that build stages
// as differences of down-sets.
//
// Devices that no plan can tell apart (kind, memory, overheads, pins) form a class. A tensor with
// readers outside its producer's block is a net. For blocks S on a device of class c
// (docs/semantics.md, "throughput")
//
//   compute, forward and backward   sums over S: differences of sums over down-sets
//   transfers                       nets with a block inside S and one outside
//
// In one memory space, where nothing travels, and on a host interconnect a stage's load depends on
// S and c alone, and `exact()` is true. With links it also depends on where the neighbours are;
// then each transfer counts once, at the least time any pair of devices needs, and what is computed
// is a lower bound (exact where link times are all equal and no tensor is read by two blocks).
//
// Work. Every block has a whole number W(v), so that sums of work are exact. A stage with load T on
// class c has at most rate(c) T work. The weights come from prices on device time (the dual of the
// fractional assignment of blocks to classes), so total work / total rate is the work bound. Where
// devices take resources whole, W(v) is the least of time x resources taken, and the total rate
// that of all resources.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coarsen/blocks.h"
#include "problem/problem.h"

namespace placewright::throughput {

// Devices that no plan can tell apart, each set in ascending order. A device with ops pinned to it
// stands alone.
std::vector<std::vector<DeviceId>> device_classes(const Problem& problem);

struct DeviceClass {
  std::vector<DeviceId> devices;
  double memory = kInfinity;
  int profile = -1;  // which transfer times it pays; -1: none (host devices)
  double rate = 0;   // work per time unit, at most
  // By block.
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<char> allowed;
};

struct NetReader {
  std::uint32_t block = 0;
  bool forward = false;  // ops of the forward pass read it
  bool backward = false;
};

struct Net {
  std::uint32_t producer = 0;
  bool backward = false;  // pass of the producer
  std::uint32_t first_block = 0;
  std::uint32_t last_block = 0;
  std::vector<NetReader> readers;  // not the producer
};

// What a net costs a stage: transfers, and what the device bears itself (docs/semantics.md, "Cut
// overhead").
struct NetCost {
  double in = 0;
  double out = 0;
  double receive = 0;
  double send = 0;

  [[nodiscard]] double all_in() const { return in + receive; }
  [[nodiscard]] double all_out() const { return out + send; }
  friend bool operator==(const NetCost&, const NetCost&) = default;
};

// Time of one pass or of both.
struct StageLoad {
  double first = 0;   // forward; interleaved: both passes
  double second = 0;  // backward; interleaved: nothing

  [[nodiscard]] double sum() const { return first + second; }
};

// Transfers of one stage for one profile. Sequential and interleaved: a single sum; else overhead,
// in and out for each pass.
inline constexpr std::size_t kMostComponents = 6;
using Transfers = std::array<double, kMostComponents>;

// About how long it takes to make a model, which is not interrupted.
double seconds_of_stage_model(const Problem& problem);

class StageModel {
 public:
  // Blocks must be acyclic and numbered along their edges. The problem must outlive the model.
  StageModel(const Problem& problem, Blocks blocks);

  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }
  [[nodiscard]] std::size_t block_count() const { return blocks_.size(); }
  [[nodiscard]] const std::vector<DeviceClass>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<Net>& nets() const { return nets_; }
  [[nodiscard]] std::span<const std::uint32_t> nets_of(std::size_t block) const {
    return nets_of_[BlockId{block}];
  }
  [[nodiscard]] bool same_kind(std::size_t a, std::size_t b) const {
    return problem_->kind_of(classes_[a].devices.front()) ==
           problem_->kind_of(classes_[b].devices.front());
  }
  [[nodiscard]] bool exact() const { return exact_; }
  [[nodiscard]] bool phased() const { return phased_; }

  // Profiles and components.
  [[nodiscard]] std::size_t profile_count() const { return profiles_.size(); }
  [[nodiscard]] std::size_t component_count() const { return components_; }
  [[nodiscard]] std::size_t slot_count() const { return components_ * profiles_.size(); }

  // Adds, or takes away, what the net costs the stage whose blocks `inside` accepts; for one
  // profile.
  template <class Inside>
  void charge(std::uint32_t net, std::size_t profile, const Inside& inside, double sign,
              double* components) const;

  // One profile, in which a net costs as much on its way in as on its way out.
  [[nodiscard]] bool symmetric() const {
    return profiles_.size() == 1 && std::ranges::all_of(profiles_[0], [](const NetCost& cost) {
             return cost.in == cost.out && cost.receive == cost.send;
           });
  }
  [[nodiscard]] const NetCost& cost(std::uint32_t net, std::size_t profile) const {
    return profiles_[profile][net];
  }

  // The load from the stage's compute, transfers (null: none) and resident bytes.
  [[nodiscard]] StageLoad load(double forward, double backward, const double* transfers,
                               double bytes, int replicas) const;

  // Resident bytes without shared weights, and the weights with the blocks that read them.
  [[nodiscard]] double bytes(std::size_t block) const { return bytes_[block]; }
  struct Weight {
    double bytes = 0;
    std::vector<std::uint32_t> blocks;
  };
  [[nodiscard]] const std::vector<Weight>& weights() const { return weights_; }

  // Work.
  [[nodiscard]] std::int64_t work(std::size_t block) const { return work_[block]; }
  [[nodiscard]] std::int64_t total_work() const { return total_work_; }
  [[nodiscard]] double total_rate() const;
  // Resources that a device of the class takes; 1 where it lists none.
  [[nodiscard]] double width(const DeviceClass& device_class) const;
  // No plan is below this: work, and the block that takes longest.
  [[nodiscard]] double work_bound() const { return work_bound_; }
  // No plan is above this.
  [[nodiscard]] double most_value() const { return most_value_; }
  [[nodiscard]] int max_replicas() const { return max_replicas_; }

 private:
  using Profile = std::vector<NetCost>;  // by net

  [[nodiscard]] bool one_space() const;
  void build_classes();
  void build_nets();
  void build_profiles();
  void build_memory();
  void build_work();
  [[nodiscard]] Profile profile_of(const DeviceClass& device_class) const;
  [[nodiscard]] bool links_are_uniform() const;

  const Problem* problem_;
  Blocks blocks_;
  TransferMode mode_;
  bool phased_;
  bool exact_ = true;
  int max_replicas_ = 1;
  double exchange_per_byte_ = 0;
  std::size_t components_ = 1;
  std::vector<DeviceClass> classes_;
  std::vector<Net> nets_;
  std::vector<TensorId> net_tensors_;
  Rows<BlockId, std::uint32_t> nets_of_;
  std::vector<Profile> profiles_;
  std::vector<double> bytes_;
  std::vector<Weight> weights_;
  std::vector<std::int64_t> work_;
  std::int64_t total_work_ = 0;
  double work_bound_ = 0;
  double most_value_ = 0;
};

template <class Inside>
void StageModel::charge(std::uint32_t id, std::size_t profile, const Inside& inside, double sign,
                        double* components) const {
  const Net& net = nets_[id];
  const NetCost& cost = profiles_[profile][id];
  if (inside(net.producer)) {
    for (const NetReader& reader : net.readers) {
      if (inside(reader.block)) continue;
      if (components_ == 1) {
        components[0] += sign * cost.all_out();
      } else {
        const std::size_t pass = net.backward ? 3 : 0;
        components[pass] += sign * cost.send;
        components[pass + 2] += sign * cost.out;
      }
      return;
    }
    return;
  }
  bool forward = false;
  bool backward = false;
  for (const NetReader& reader : net.readers) {
    if (!inside(reader.block)) continue;
    forward |= reader.forward;
    backward |= reader.backward;
  }
  if (!forward && !backward) return;
  if (components_ == 1) {
    components[0] += sign * cost.all_in();
    return;
  }
  const bool in_backward = net.backward ? backward : !forward;
  const std::size_t pass = in_backward ? 3 : 0;
  components[pass] += sign * cost.receive;
  components[pass + 1] += sign * cost.in;
}

}  // namespace placewright::throughput
