#include "problem/draft.h"

#include <algorithm>

#include "problem/part.h"

namespace placewright {
ProblemDraft with_objective(ProblemDraft draft, Objective objective) {
  draft.objective = objective;
  if (!record_of(objective).one_host || draft.cluster.interconnect != InterconnectKind::host) {
    return draft;
  }
  const auto host_kind = std::find_if(draft.cluster.kinds.begin(), draft.cluster.kinds.end(),
                                      [](const DeviceKind& kind) { return kind.on_host; });
  if (host_kind == draft.cluster.kinds.end()) return draft;
  const KindId kind{static_cast<std::size_t>(host_kind - draft.cluster.kinds.begin())};

  // Ops pinned to any of the host devices stay on the host.
  const auto is_host = [&](DeviceId id) {
    return id.index() < draft.cluster.devices.size() &&
           draft.cluster.kinds[draft.cluster.devices[id.index()].kind.index()].on_host;
  };
  std::vector<OpId> host_ops;
  for (const OpId op : ids<OpId>(draft.ops.size())) {
    DeviceId& pin = draft.ops[op.index()].pinned_to;
    if (pin.valid() && is_host(pin)) {
      host_ops.push_back(op);
      pin = DeviceId{};
    }
  }
  std::vector<DeviceId> accelerators;
  for (const DeviceId id : ids<DeviceId>(draft.cluster.devices.size())) {
    if (!is_host(id)) accelerators.push_back(id);
  }
  keep_devices(draft, accelerators);
  const DeviceId cpu{draft.cluster.devices.size()};
  draft.cluster.devices.push_back(Device{.name = "cpu", .kind = kind});
  for (const OpId op : host_ops) draft.ops[op.index()].pinned_to = cpu;
  return draft;
}

}  // namespace placewright
