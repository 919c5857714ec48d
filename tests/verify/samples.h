// Small problems with a valid plan each, worked out by hand; the tests break them on purpose.

#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "problem/draft.h"
#include "problem/plan.h"

namespace placewright::testing {

struct Sample {
  ProblemDraft draft;
  Plan plan;
};

inline Placement placed(std::initializer_list<std::size_t> devices) {
  Placement placement;
  for (const std::size_t device : devices) placement.push_back(DeviceId{device});
  return placement;
}

inline Op op(std::string name, std::vector<double> time, double memory = 0) {
  Op record;
  record.name = std::move(name);
  record.time = std::move(time);
  record.memory = memory;
  return record;
}

inline Op backward_op(std::string name, std::vector<double> time, double memory = 0) {
  Op record = op(std::move(name), std::move(time), memory);
  record.backward = true;
  return record;
}

inline std::vector<OpId> ops(std::initializer_list<std::size_t> numbers) {
  std::vector<OpId> list;
  for (const std::size_t number : numbers) list.emplace_back(number);
  return list;
}

inline std::vector<DeviceId> devices(std::initializer_list<std::size_t> numbers) {
  std::vector<DeviceId> list;
  for (const std::size_t number : numbers) list.emplace_back(number);
  return list;
}

inline Tensor tensor(std::size_t producer, std::initializer_list<std::size_t> consumers,
                     double bytes, double host_time = 0) {
  Tensor record;
  record.producer = OpId{producer};
  record.consumers = ops(consumers);
  record.bytes = bytes;
  record.host_time = host_time;
  return record;
}

inline Transfer direct(std::size_t tensor, std::size_t from, std::size_t to, double start,
                       double end) {
  return {TensorId{tensor}, Leg::direct, DeviceId{from}, DeviceId{to}, start, end};
}
inline Transfer out(std::size_t tensor, std::size_t from, double start, double end) {
  return {TensorId{tensor}, Leg::out, DeviceId{from}, DeviceId{}, start, end};
}
inline Transfer in(std::size_t tensor, std::size_t to, double start, double end) {
  return {TensorId{tensor}, Leg::in, DeviceId{}, DeviceId{to}, start, end};
}

// Devices a, b, c in a full mesh of links (latency 1, 8 bytes per unit): 8 bytes take 2.
//
//   a | x 0-2 | y 2-5 | v 5-6
//   b |              z 4-6 |      w 9-10
//   a -> b   t0 2-4   t1 5-7   t2 7-9            (t0: x -> y, z; t1, t2: y -> w; t3: z -> w)
inline Sample links_schedule() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::latency;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{"a", KindId{0}}, {"b", KindId{1}}, {"c", KindId{1}}};
  for (const std::size_t from : {0U, 1U, 2U}) {
    for (const std::size_t to : {0U, 1U, 2U}) {
      if (from != to) draft.cluster.links.push_back({DeviceId{from}, DeviceId{to}, 1, 8});
    }
  }
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("x", {2, 4}, 10), op("y", {3, kUnsupported}, 10), op("z", {2, 2}, 10),
               op("w", {1, 1}, 10), op("v", {1, 5}, 10)};
  draft.tensors = {tensor(0, {1, 2}, 8), tensor(1, {3}, 8), tensor(1, {3}, 8), tensor(2, {3}, 8)};
  draft.tensors[0].name = "t0";

  Plan& plan = sample.plan;
  plan.placement = placed({0, 0, 1, 1, 0});
  plan.schedule = Schedule{Table<OpId, double>(std::vector<double>{0, 2, 4, 9, 5}),
                           Table<OpId, double>(std::vector<double>{2, 5, 6, 10, 6}),
                           {direct(0, 0, 1, 2, 4), direct(1, 0, 1, 5, 7), direct(2, 0, 1, 7, 9)}};
  plan.value = 10;
  return sample;
}

// Two accelerators and a host device; the tensor of x is read on both of the others.
//
//   acc0 | x 0-2, out 2-3
//   acc1 |             in 3-4, z 4-6, out 6-8
//   cpu  |             y 3-8,               w 8-9
inline Sample host_schedule() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}, {"cpu", true}};
  draft.cluster.devices = {{"acc0", KindId{0}}, {"acc1", KindId{0}}, {"cpu", KindId{1}}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("x", {2, 9}), op("y", {3, 5}), op("z", {2, 9}), op("w", {1, 1})};
  draft.tensors = {tensor(0, {1, 2}, 4, 1), tensor(1, {3}, 4, 7), tensor(2, {3}, 4, 2)};

  Plan& plan = sample.plan;
  plan.placement = placed({0, 2, 1, 2});
  plan.schedule = Schedule{Table<OpId, double>(std::vector<double>{0, 3, 4, 8}),
                           Table<OpId, double>(std::vector<double>{2, 8, 6, 9}),
                           {out(0, 0, 2, 3), in(0, 1, 3, 4), out(2, 1, 6, 8)}};
  plan.value = 9;
  return sample;
}

// A chain p -> q -> r through acc0, acc1 and cpu0; tensors take 1 out and 1 in. acc2, cpu1 are
// idle.
//
//   acc0: 4 + 1 = 5      acc1: 1 + 4 + 1 = 6      cpu0: 8
inline Sample pipeline() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}, {"cpu", true}};
  draft.cluster.devices = {{"acc0", KindId{0}},
                           {"acc1", KindId{0}},
                           {"acc2", KindId{0}},
                           {"cpu0", KindId{1}},
                           {"cpu1", KindId{1}}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("p", {4, 8}, 10), op("q", {4, 8}, 10), op("r", {4, 8}, 10)};
  draft.tensors = {tensor(0, {1}, 5, 1), tensor(1, {2}, 5, 1)};

  Plan& plan = sample.plan;
  plan.placement = placed({0, 1, 3});
  plan.stages = {
      {devices({0}), ops({0}), 5}, {devices({1}), ops({1}), 6}, {devices({3}), ops({2}), 8}};
  plan.value = 8;
  return sample;
}

// p on acc0, q on the cpu, r on acc0 again; s, which needs nothing, in a call of its own between.
//
//   acc0 | p 0-4 | s 4-7 |    r 9-13
//   cpu  |         q 4-9
inline Sample device_calls() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::call_latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.rules.calls_per_device = 3;
  draft.cluster.kinds = {{"accelerator"}, {"cpu", true}};
  draft.cluster.devices = {{"acc0", KindId{0}}, {"cpu", KindId{1}}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("p", {3, 50}, 10), op("q", {3, 5}, 10), op("r", {3, 50}, 10),
               op("s", {3, 50}, 10)};
  draft.tensors = {tensor(0, {1}, 5, 1), tensor(1, {2}, 5, 1)};

  Plan& plan = sample.plan;
  plan.placement = placed({0, 1, 0, 0});
  plan.calls = {
      {DeviceId{0}, ops({0}), 0, 4}, {DeviceId{0}, ops({3}), 4, 7}, {DeviceId{0}, ops({2}), 9, 13}};
  plan.value = 13;
  return sample;
}

// Two cores as three devices in one memory space, and a device with memory of its own.
//
//   c0  |                 y 3-7.25
//   c1  |                 z 3-6.25     v 7-8.5
//   c01 | x 0-3                               u 8.5-10
//   gpu |                     w 4-6                  q 8.25-11.25
//   ram -> gpu   t0 3-4   t3 6.25-7.25   t2 7.25-8.25
//   gpu -> ram   t1 6-7                     (t0: x -> y, z, w; t1: w -> v, u; t2: y -> q; t3: z -> q)
//
// x sends t0 to the gpu and hands it over, 0.5 each; y and z take it in for 0.25. Whatever else is
// taken in costs 0.5 on cores and 1 on the gpu. 8 bytes take 1.
inline Sample shared_cores() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::latency;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.kinds = {{"core"}, {"pair"}, {"gpu"}};
  draft.cluster.resources = {{"core0", 1}, {"core1", 1}};
  draft.cluster.spaces = {{"ram", 5 * 10 + 5}};
  draft.cluster.devices = {
      {"c0", KindId{0}}, {"c1", KindId{0}}, {"c01", KindId{1}}, {"gpu", KindId{2}}};
  for (const std::size_t core : {0U, 1U, 2U}) {
    draft.cluster.devices[core].space = SpaceId{0};
    draft.cluster.devices[core].receive_overhead = 0.5;
    draft.cluster.links.push_back({DeviceId{core}, DeviceId{3}, 0, 8});
    draft.cluster.links.push_back({DeviceId{3}, DeviceId{core}, 0, 8});
  }
  draft.cluster.devices[0].uses = {{ResourceId{0}, 1}};
  draft.cluster.devices[1].uses = {{ResourceId{1}, 1}};
  draft.cluster.devices[2].uses = {{ResourceId{0}, 1}, {ResourceId{1}, 1}};
  draft.cluster.devices[3].receive_overhead = 1;
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("x", {4, 2, 9}, 10), op("y", {4, 4, 9}, 10), op("z", {3, 3, 9}, 10),
               op("w", {9, 9, 1}, 10), op("v", {1, 1, 9}, 10), op("u", {1, 1, 9}, 10),
               op("q", {9, 9, 1}, 10)};
  draft.tensors = {tensor(0, {1, 2, 3}, 8), tensor(3, {4, 5}, 8), tensor(1, {6}, 8),
                   tensor(2, {6}, 8)};
  draft.tensors[0].cuts = {{KindId{0}, 0, 0.25}, {KindId{1}, 0.5, 0}};
  draft.shared_weights = {{"shared", 5, ops({1, 2})}};

  Plan& plan = sample.plan;
  plan.placement = placed({2, 0, 1, 3, 1, 2, 3});
  plan.schedule =
      Schedule{Table<OpId, double>(std::vector<double>{0, 3, 3, 4, 7, 8.5, 8.25}),
               Table<OpId, double>(std::vector<double>{3, 7.25, 6.25, 6, 8.5, 10, 11.25}),
               {direct(0, 2, 3, 3, 4), direct(1, 3, 1, 6, 7), direct(2, 0, 3, 7.25, 8.25),
                direct(3, 1, 3, 6.25, 7.25)}};
  plan.value = 11.25;
  return sample;
}

// Three cores in pairs, all in one memory space: a -> b -> c, each of load 1, must take turns.
inline Sample shared_pipeline() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.kinds = {{"pair"}};
  draft.cluster.resources = {{"core0", 1}, {"core1", 1}, {"core2", 1}};
  draft.cluster.spaces = {{"ram", 30}};
  draft.cluster.devices = {{"c01", KindId{0}}, {"c12", KindId{0}}, {"c02", KindId{0}}};
  for (Device& device : draft.cluster.devices) device.space = SpaceId{0};
  draft.cluster.devices[0].uses = {{ResourceId{0}, 1}, {ResourceId{1}, 1}};
  draft.cluster.devices[1].uses = {{ResourceId{1}, 1}, {ResourceId{2}, 1}};
  draft.cluster.devices[2].uses = {{ResourceId{0}, 1}, {ResourceId{2}, 1}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("a", {1}, 10), op("b", {1}, 10), op("c", {1}, 10)};
  draft.tensors = {tensor(0, {1}, 5), tensor(1, {2}, 5)};

  Plan& plan = sample.plan;
  plan.placement = placed({0, 1, 2});
  plan.stages = {{devices({0}), ops({0}), 1, 0.0},
                 {devices({1}), ops({1}), 1, 1.0},
                 {devices({2}), ops({2}), 1, 2.0}};
  plan.value = 3;
  return sample;
}

// Two accelerators that share a bus: only one call at a time.
//
//   acc0 | p 0-4           r 8-11
//   acc1 |        q 4-8
inline Sample shared_calls() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::call_latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.rules.calls_per_device = 2;
  draft.cluster.kinds = {{"accelerator"}, {"cpu", true}};
  draft.cluster.resources = {{"bus", 1}};
  draft.cluster.devices = {{"acc0", KindId{0}}, {"acc1", KindId{0}}, {"cpu", KindId{1}}};
  draft.cluster.devices[0].uses = draft.cluster.devices[1].uses = {{ResourceId{0}, 1}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("p", {3, 50}, 10), op("q", {3, 50}, 10), op("r", {3, 50}, 10)};
  draft.tensors = {tensor(0, {1}, 5, 1)};

  Plan& plan = sample.plan;
  plan.placement = placed({0, 1, 0});
  plan.calls = {
      {DeviceId{0}, ops({0}), 0, 4}, {DeviceId{1}, ops({1}), 4, 8}, {DeviceId{0}, ops({2}), 8, 11}};
  plan.value = 11;
  return sample;
}

}  // namespace placewright::testing
