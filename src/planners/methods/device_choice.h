// Which devices a constructive planner may still give an op to.
//
// Colocated ops are bound to one device by the first of them, and their memory is taken then. The
// same planner runs in three modes: within memory; ignoring memory (to learn what it would have
// liked); and held to a placement. `construct` goes through them: the first mode that works, else a
// packing close to the second.

#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "evaluate/memory.h"
#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright {

class DeviceChoice {
 public:
  static DeviceChoice within_memory(const Problem& problem);
  // The same with these devices only.
  static DeviceChoice within_memory(const Problem& problem, std::vector<DeviceId> devices);
  static DeviceChoice ignoring_memory(const Problem& problem);
  static DeviceChoice held_to(const Problem& problem, const Placement& placement);

  // Valid until the next call. Empty: a dead end.
  [[nodiscard]] std::span<const DeviceId> candidates(OpId op);
  void take(OpId op, DeviceId device);

 private:
  enum class Mode { within_memory, ignoring_memory, held };
  DeviceChoice(const Problem& problem, Mode mode);

  const Problem* problem_;
  Mode mode_;
  MemoryLedger ledger_;
  std::vector<DeviceId> devices_;
  Table<GroupId, DeviceId> bound_;
  std::vector<DeviceId> candidates_;
};

// The devices with most to do under the placement, at most `count`, in their order.
std::vector<DeviceId> busiest_devices(const Problem& problem, const Placement& placement,
                                      std::size_t count);

// Builds a plan with the devices that the choice offers; nullopt at a dead end or when asked to
// stop.
using Construction = std::function<std::optional<Plan>(DeviceChoice&)>;

Answer construct(const Problem& problem, Control& control, const Construction& construction);

}  // namespace placewright
