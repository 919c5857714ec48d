// Records of a draft in few words, for problems written by hand.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "problem/draft.h"

namespace placewright::testing {

inline Op op_record(std::string name, std::vector<double> time, double memory = 0,
                    bool backward = false) {
  Op op;
  op.name = std::move(name);
  op.time = std::move(time);
  op.memory = memory;
  op.backward = backward;
  return op;
}

inline Tensor tensor_record(OpId producer, std::vector<OpId> consumers, double host_time = 0,
                            double bytes = 0) {
  Tensor tensor;
  tensor.producer = producer;
  tensor.consumers = std::move(consumers);
  tensor.host_time = host_time;
  tensor.bytes = bytes;
  return tensor;
}

inline Device device_record(std::string name, KindId kind, double memory = kInfinity) {
  Device device;
  device.name = std::move(name);
  device.kind = kind;
  device.memory = memory;
  return device;
}

inline Model model_record(std::string name) {
  Model model;
  model.name = std::move(name);
  return model;
}

// "cpu:0", "cpu:1", …: cores of one kind, each a device, in one memory.
inline Cluster core_cluster(std::size_t cores) {
  Cluster cluster;
  cluster.kinds = {{"core"}};
  cluster.spaces = {{"ram"}};
  for (const ResourceId core : ids<ResourceId>(cores)) {
    cluster.resources.push_back({"core " + std::to_string(core.index()), 1});
    Device device = device_record("cpu:" + std::to_string(core.index()), KindId{0});
    device.uses = {{core, 1}};
    device.space = SpaceId{0};
    cluster.devices.push_back(std::move(device));
  }
  return cluster;
}

}  // namespace placewright::testing
