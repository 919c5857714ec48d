// A plan made ready to run: its segments compiled, memory for every slot, and the copies between
// memories, as steps that workers carry out.
//
// Steps are the segments, then the copies:
//
//   segment  runs on one of its devices; its inputs are bound to what other steps make.
//   copy     brings one tensor from the memory of the device that made it to the memory of one that
//            reads it. Devices with the same memory need none.
//
// Each device has a worker; core sets that begin with the same core share one, which takes turns
// between them. A segment whose cores the plan gives to others before waits for those (`holders`).
// Each pair of memories between which something is copied has one
// too: copies go on while the devices compute, one after the other between the same two memories,
// as the cost model has it for links. What the model reads is in the memory of its readers before
// the run starts: the cost model knows no transfer for it.
//
// With replicas the devices of a segment take samples in turn, so that what is copied depends on
// the slot; the number of slots is a multiple of the numbers of replicas.
//
// A pipeline of one stage with replicas on equal sets of cores is compiled once, with a stream for
// each replica: streams have the backend's packed weights in memory, and in the caches, once. The
// threads that compute are then the backend's own, on whichever of the cores the system gives them;
// where the sets are pinned, the backend binds them. One worker hands them the samples.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "backends/buffer_copy.h"
#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "formats/array.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/segments.h"

namespace placewright {

// A tensor that goes from one memory to another whenever the plan runs.
struct TensorCopy {
  std::size_t producer = 0;  // segment
  std::string tensor;        // named after the op that makes it
  DeviceId from;             // whose memory it leaves
  DeviceId to;               // whose memory it comes to
  double bytes = 0;
};

// One thread of a run.
struct PlanWorker {
  Target target;                   // with all cores of its devices; none if it computes nothing
  std::vector<DeviceId> devices;   // of the problem; of one that copies: the receiver
  bool copies = false;             // tensors, instead of running segments
  std::vector<std::size_t> steps;  // in the order of the segments
};

// The inputs of a slot have a seed of their own.
constexpr std::uint64_t seed_of_slot(std::uint64_t seed, std::size_t slot) {
  return seed * 1000 + slot;
}

class PreparedPlan {
 public:
  // Made before any thread is bound: backends spread their threads by the processor mask that they
  // see when they compile. `slots`: wanted at least; 0: two for each segment. Throws
  // std::invalid_argument for devices that cannot be used here, RuntimeError if memory is short.
  PreparedPlan(const Problem& problem, const Plan& plan,
               const std::vector<std::unique_ptr<NeuralModel>>& models, int slots,
               std::uint64_t seed);

  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const std::vector<TensorCopy>& copies() const { return copies_; }
  [[nodiscard]] const std::vector<PlanWorker>& workers() const { return workers_; }
  [[nodiscard]] std::size_t slots() const { return slots_; }
  // The number of samples after which every replica has had its turn.
  [[nodiscard]] std::size_t round() const { return round_; }
  [[nodiscard]] std::size_t step_count() const { return segments_.size() + copies_.size(); }
  // The steps that a step reads from, and those that read from it.
  [[nodiscard]] const std::vector<std::size_t>& inputs(std::size_t step) const {
    return inputs_[step];
  }
  [[nodiscard]] const std::vector<std::size_t>& outputs(std::size_t step) const {
    return outputs_[step];
  }
  [[nodiscard]] bool is_copy(std::size_t step) const { return step >= segments_.size(); }
  // The segments of other workers that have cores of this one before it.
  [[nodiscard]] const std::vector<std::size_t>& holders(std::size_t step) const {
    return is_copy(step) ? no_steps_ : holders_[step];
  }
  // Whose work a step is in a slot; of a copy: the receiver's.
  [[nodiscard]] DeviceId device(std::size_t step, std::size_t slot) const {
    if (is_copy(step)) return copies_[step - segments_.size()].to;
    return segments_[step].devices[slot % segments_[step].devices.size()];
  }
  [[nodiscard]] const Target& target(DeviceId device) const { return targets_.at(device); }
  // What sees that others use a device while the worker is at it, or of streams any of their cores;
  // nullptr: nothing does.
  [[nodiscard]] std::unique_ptr<DisturbanceProbe> probe(const PlanWorker& worker,
                                                        DeviceId device) const;
  // Whether a step is carried out in a slot, and whether by this worker.
  [[nodiscard]] bool needed(std::size_t step, std::size_t slot) const {
    return !is_copy(step) || copying_[step - segments_.size()][slot].transfer != nullptr;
  }
  [[nodiscard]] bool does(const PlanWorker& worker, std::size_t step, std::size_t slot) const;

  // An input of a model from then on, in a slot; the array is one of fitted_inputs.
  void set_input(std::size_t model, const std::string& input, std::size_t slot, const Array& array);

  // Throws RuntimeError naming the step.
  void run(std::size_t step, std::size_t slot);

  // Whether the replicas of the one segment are streams of one part. Their samples are started, as
  // many as there are replicas, and waited for.
  [[nodiscard]] bool has_streams() const { return joined_.has_value(); }
  void start(std::size_t slot);
  void wait(std::size_t slot);

  // The tolerance that the parts' precision justifies.
  [[nodiscard]] double tolerance() const;
  // A tensor of a model as the plan made it in a slot, in host memory; nullopt if no segment hands
  // it out.
  [[nodiscard]] std::optional<HostBuffer> output(std::size_t model, const TensorKey& tensor,
                                                 std::size_t slot);
  // The outputs of a model that ops make, by name.
  [[nodiscard]] NamedArrays outputs(std::size_t model, std::size_t slot);

 private:
  // One copy in one slot; without a transfer the slot needs none.
  struct Copying {
    std::unique_ptr<Buffer> destination;
    std::unique_ptr<BufferCopy> transfer;
  };
  // Which output of which segment.
  struct Origin {
    std::size_t segment = 0;
    std::size_t output = 0;
  };
  using CopyKey = std::tuple<std::size_t, std::size_t, std::string, std::string>;

  void find_targets();
  void check_memory() const;
  void number_ops();
  void find_slots(int wanted);
  void compile();
  void make_inputs(std::uint64_t seed);
  void bind(std::size_t segment, std::size_t slot);
  std::size_t copy_for(const Origin& origin, DeviceId reader, std::size_t slot);
  void connect(std::size_t from, std::size_t to);
  void add_workers();
  void find_holders();
  [[nodiscard]] Origin origin_of(std::size_t segment, const TensorKey& tensor) const;
  [[nodiscard]] std::string describe(std::size_t step, std::size_t slot) const;
  template <class Action>
  void attempt(std::size_t step, std::size_t slot, const Action& action);

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  bool streams_;  // a pipeline
  std::vector<Segment> segments_;
  std::map<DeviceId, Target> targets_;  // of the devices that have something to do
  std::map<DeviceId, RuntimeDevice> described_;
  std::optional<Target> joined_;     // the replicas are streams of one part, on these cores
  Table<OpId, std::size_t> number_;  // in its model
  std::size_t slots_ = 1;
  std::size_t round_ = 1;
  std::vector<std::vector<std::unique_ptr<CompiledPart>>> parts_;  // by segment, replica or one
  // By model, slot and memory: the inputs of the model.
  std::vector<std::vector<std::map<std::string, Buffers>>> model_inputs_;
  std::vector<std::vector<std::unique_ptr<Request>>> requests_;  // by segment, slot
  std::map<CopyKey, std::size_t> copy_numbers_;
  std::vector<TensorCopy> copies_;
  std::vector<std::vector<Copying>> copying_;  // by copy, slot
  std::vector<std::vector<std::size_t>> inputs_;
  std::vector<std::vector<std::size_t>> outputs_;
  std::vector<PlanWorker> workers_;
  std::vector<std::vector<std::size_t>> holders_;  // by segment
  std::vector<std::size_t> no_steps_;
};

}  // namespace placewright
