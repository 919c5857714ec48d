// PipelineEvaluator: the value of a pipeline (pipeline.h) while groups of ops move between devices.
//
// It keeps the work of each device and, for each tensor, how many ops of each pass read it on each
// device. A move changes a tensor's transfers only where such a count, or the producer, changes.
//
//   * time of a move, tried or made: O(tensors touched by the group); with links times the devices
//     that read a tensor made in the group; plus O(devices) where the busiest device gets lighter
//   * memory: O(ops + edges), and 8 counts for each tensor on clusters of up to 8 devices; never
//     tensors x devices
//
// It does not look at memory, contiguity, colocation and pins, and knows no replicas, no shared
// resources and no shared memory spaces.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evaluate/pipeline.h"
#include "problem/problem.h"

namespace placewright {

class PipelineEvaluator {
 public:
  // Every op must have a device. The problem must outlive the evaluator.
  PipelineEvaluator(const Problem& problem, Placement placement);

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] DeviceId device(OpId op) const { return placement_[op]; }
  [[nodiscard]] DeviceId device(GroupId group) const {
    return placement_[problem_->group_ops(group).front()];
  }
  [[nodiscard]] double value() const;
  // Ops on devices that cannot run them, and transfers without a link. The value is infinite while
  // there are any; loads leave them out.
  [[nodiscard]] std::int64_t impossible() const { return impossible_; }
  [[nodiscard]] const DeviceLoad& work(DeviceId device) const { return loads_[device]; }
  [[nodiscard]] double load(DeviceId device) const {
    return loads_[device].load(problem_->rules());
  }
  // The device with the largest load; phased: with the largest forward load.
  [[nodiscard]] DeviceId busiest() const { return maxima_[0].device(); }

  // The value after a move; the placement stays as it is. A span of ops is moved op by op and back.
  [[nodiscard]] double value_if_moved(OpId op, DeviceId to);
  [[nodiscard]] double value_if_moved(GroupId group, DeviceId to);
  [[nodiscard]] double value_if_moved(std::span<const OpId> ops, DeviceId to);

  void move(OpId op, DeviceId to);
  void move(GroupId group, DeviceId to);

 private:
  // Ops of each pass, on some device, that read a tensor.
  struct Readers {
    DeviceId device;
    std::uint32_t forward = 0;
    std::uint32_t backward = 0;

    [[nodiscard]] std::uint32_t all() const { return forward + backward; }
  };

  struct TensorRecord {
    double host_time = 0;
    OpId producer;
    std::uint32_t consumers = 0;
    std::uint32_t first_slot = 0;
    std::uint32_t slot_count = 0;  // one for each device: indexed; fewer: searched
    bool backward = false;         // pass of the producer
  };

  // What a group of ops has to do with a tensor.
  struct Touch {
    TensorId tensor;
    std::uint32_t forward = 0;  // readers in the group
    std::uint32_t backward = 0;
    bool produces = false;

    [[nodiscard]] Readers added_to(Readers count) const {
      return {count.device, count.forward + forward, count.backward + backward};
    }
    [[nodiscard]] Readers taken_from(Readers count) const {
      return {count.device, count.forward - forward, count.backward - backward};
    }
  };

  // Time of a group on a kind of device.
  struct GroupTime {
    double forward = 0;
    double backward = 0;
    std::int64_t unsupported = 0;
  };

  struct DeviceRecord {
    double send_overhead = 0;
    double receive_overhead = 0;
    std::uint32_t kind = 0;
    bool on_host = false;
  };

  [[nodiscard]] double send_overhead(TensorId tensor, DeviceId device) const {
    return problem_->has_tensor_cuts() ? problem_->send_overhead(tensor, device)
                                       : devices_[device].send_overhead;
  }
  [[nodiscard]] double receive_overhead(TensorId tensor, DeviceId device) const {
    return problem_->has_tensor_cuts() ? problem_->receive_overhead(tensor, device)
                                       : devices_[device].receive_overhead;
  }

  // What a device has to do for a tensor.
  enum class Role : std::uint8_t { none, sends, fetches_forward, fetches_backward };

  // The largest of the devices' loads.
  class Maximum {
   public:
    void resize(std::size_t device_count) { loads_.assign(device_count, 0); }
    void set(DeviceId device, double load);
    [[nodiscard]] double value() const { return loads_[top_]; }
    [[nodiscard]] DeviceId device() const { return top_; }
    [[nodiscard]] double load(DeviceId device) const { return loads_[device]; }

   private:
    Table<DeviceId, double> loads_;
    DeviceId top_{0};
  };

  void build_tensors();
  void build_groups();
  void sum_up();
  void set_maxima(DeviceId device);
  // The load that counts for the first, and for the second maximum.
  [[nodiscard]] double first_load(const DeviceLoad& load) const;
  [[nodiscard]] double second_load(const DeviceLoad& load) const;

  [[nodiscard]] std::span<const Readers> slots(const TensorRecord& tensor) const {
    return {slots_.data() + tensor.first_slot, tensor.slot_count};
  }
  [[nodiscard]] Readers readers(const TensorRecord& tensor, DeviceId device) const;
  Readers& slot_for(const TensorRecord& tensor, DeviceId device);
  void count_readers(const Touch& touch, DeviceId from, DeviceId to);
  template <class Visit>
  void for_each_touch(OpId op, Visit visit) const;

  // A change is worked out on copies of the loads it touches, and then kept or forgotten.
  void begin_change();
  DeviceLoad& changed(DeviceId device);
  void change_group(GroupId group, DeviceId from, DeviceId to);
  void change_op(OpId op, DeviceId from, DeviceId to);
  void change_time(OpId op, DeviceId device, int sign);
  void change_tensor(const Touch& touch, DeviceId from, DeviceId to);
  void change_host_tensor(const Touch& touch, DeviceId from, DeviceId to);
  void change_link_sources(const Touch& touch, DeviceId from, DeviceId to);
  void change_link_targets(const Touch& touch, DeviceId from, DeviceId to);
  void change_role(TensorId id, DeviceId device, Role role, int sign);
  void change_transfer(TensorId id, DeviceId from, DeviceId to, Role fetch, int sign);
  [[nodiscard]] static Role role(const TensorRecord& tensor, DeviceId producer, DeviceId device,
                                 const Readers& count);
  [[nodiscard]] double value_of_change() const;
  template <class LoadOf>
  [[nodiscard]] double maximum_of_change(const Maximum& maximum, LoadOf load_of) const;
  void keep_change();

  void move_op(OpId op, DeviceId to);
  void move_together(GroupId group, DeviceId to);

  const Problem* problem_;
  TransferMode mode_;
  bool phased_;
  bool by_links_;
  Placement placement_;

  Table<DeviceId, DeviceRecord> devices_;
  Table<TensorId, TensorRecord> tensors_;
  std::vector<Readers> slots_;
  Rows<GroupId, Touch> touches_;
  std::vector<GroupTime> group_times_;  // group x kind
  Table<GroupId, char> scattered_;      // its ops are on several devices

  Table<DeviceId, DeviceLoad> loads_;
  std::int64_t impossible_ = 0;
  Maximum maxima_[2];  // interleaved: the first; phased: forward, backward
  std::uint32_t moves_ = 0;

  std::uint64_t change_ = 0;  // number of the current change
  Table<DeviceId, std::uint64_t> changed_in_;
  std::vector<DeviceId> touched_;
  Table<DeviceId, DeviceLoad> after_;
  std::int64_t impossible_after_ = 0;

  Table<DeviceId, DeviceLoad> saved_loads_;
  std::vector<DeviceId> saved_devices_;
};

}  // namespace placewright
