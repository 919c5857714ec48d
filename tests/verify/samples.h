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

}  // namespace placewright::testing
