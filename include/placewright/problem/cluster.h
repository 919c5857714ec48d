// The devices at hand and how they reach each other, without a model.

#pragma once

#include <limits>
#include <string>
#include <vector>

#include "placewright/problem/ids.h"
#include "placewright/problem/spelling.h"

namespace placewright {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Devices of one kind run every op in the same time.
struct DeviceKind {
  std::string name;
  bool on_host = false;  // host interconnect: reads and writes host memory for nothing

  friend bool operator==(const DeviceKind&, const DeviceKind&) = default;
};

// What several devices may use, such as cores or multiprocessors: the ops that run at any moment
// take at most `capacity` of it.
struct Resource {
  std::string name;
  double capacity = 1;

  friend bool operator==(const Resource&, const Resource&) = default;
};

// Memory that several devices share: weights and tensors count once, nothing travels inside.
struct Space {
  std::string name;
  double memory = kInfinity;  // bytes

  friend bool operator==(const Space&, const Space&) = default;
};

// What an op with a share of 1 takes of a resource while it runs on a device.
struct ResourceUse {
  ResourceId resource;
  double amount = 1;

  friend bool operator==(const ResourceUse&, const ResourceUse&) = default;
};

struct Device {
  std::string name;
  KindId kind;
  double memory = kInfinity;    // bytes; in a shared space: without limit, the space has one
  int lanes = 1;                // ops it runs at once
  double send_overhead = 0;     // time added to the device for each tensor it sends
  double receive_overhead = 0;  // ... and for each that it receives
  std::vector<ResourceUse> uses = {};
  SpaceId space = {};  // not valid: a memory space of its own
  // The machine it is in, where there are several; empty: not stated. Links say what that costs.
  std::string node = {};
  double price = 0;  // per hour; 0: not stated. No objective counts it

  friend bool operator==(const Device&, const Device&) = default;
};

// How one device reaches another: latency + bytes / bandwidth.
struct Link {
  DeviceId from;
  DeviceId to;
  double latency = 0;
  double bandwidth = kInfinity;  // bytes per time unit

  friend bool operator==(const Link&, const Link&) = default;
};

enum class InterconnectKind { host, links };
template <>
inline constexpr auto kSpellings<InterconnectKind> = std::to_array<Spelling<InterconnectKind>>({
    {InterconnectKind::host, "host", "accelerators exchange tensors through host memory"},
    {InterconnectKind::links, "links", "each pair of devices has its own link, or none"},
});

struct Cluster {
  std::vector<DeviceKind> kinds;
  std::vector<Device> devices;
  InterconnectKind interconnect = InterconnectKind::links;
  std::vector<Link> links;
  std::vector<Resource> resources = {};
  std::vector<Space> spaces = {};

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

}  // namespace placewright
