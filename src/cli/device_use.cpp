#include "cli/device_use.h"

#include <algorithm>

#include "evaluate/memory.h"

namespace placewright::cli {
namespace {

void add_schedule(const Problem& problem, const Plan& plan, Table<DeviceId, DeviceUse>& uses) {
  for (const OpId op : problem.ops()) {
    uses[plan.placement[op]].busy += plan.schedule->end[op] - plan.schedule->start[op];
  }
}

// A replicated stage keeps each of its devices busy for the stage's load, and fills each one's
// memory with the whole stage.
void add_stages(const Problem& problem, const Plan& plan, Table<DeviceId, DeviceUse>& uses) {
  for (const Stage& stage : plan.stages) {
    for (const DeviceId device : stage.devices) {
      DeviceUse& use = uses[device];
      use.busy += stage.load;
      if (device == stage.devices.front()) continue;
      Placement there(problem.op_count());
      for (const OpId op : stage.ops) there[op] = device;
      use.ops = stage.ops.size();
      use.memory = MemoryLedger(problem, there).used(device);
    }
  }
}

void add_calls(const Problem& problem, const Plan& plan, Table<DeviceId, DeviceUse>& uses) {
  for (const Call& call : plan.calls) uses[call.device].busy += call.end - call.start;
  for (const OpId op : problem.ops()) {
    const DeviceId device = plan.placement[op];
    if (problem.on_host(device)) uses[device].busy += problem.time(op, device);
  }
}

}  // namespace

double end_of(const Plan& plan) {
  double end = 0;
  if (plan.schedule) {
    for (const double op_end : plan.schedule->end) end = std::max(end, op_end);
    for (const Transfer& transfer : plan.schedule->transfers) end = std::max(end, transfer.end);
  }
  for (const Call& call : plan.calls) end = std::max(end, call.end);
  return end;
}

Table<DeviceId, DeviceUse> device_uses(const Problem& problem, const Plan& plan) {
  Table<DeviceId, DeviceUse> uses(problem.device_count());
  const MemoryLedger memory(problem, plan.placement);
  for (const DeviceId device : problem.devices()) {
    uses[device].memory = memory.used(device);
    uses[device].memory_limit = memory.capacity(device);
  }
  for (const OpId op : problem.ops()) ++uses[plan.placement[op]].ops;
  if (plan.schedule) add_schedule(problem, plan, uses);
  add_stages(problem, plan, uses);
  if (problem.objective() == Objective::call_latency) add_calls(problem, plan, uses);

  const double whole =
      problem.objective() == Objective::total_completion ? end_of(plan) : plan.value;
  for (const DeviceId device : problem.devices()) {
    const int lanes = plan.schedule ? problem.device(device).lanes : 1;
    if (whole > 0) uses[device].utilisation = uses[device].busy / (whole * lanes);
  }
  return uses;
}

}  // namespace placewright::cli
