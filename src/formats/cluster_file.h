// Cluster files (version 1): the devices and how they reach each other, without a model.
//
//   {"placewright": "cluster", "version": 1,
//    "kinds": [{"name": "gpu", "host": false}],
//    "devices": [{"name": "gpu0", "kind": "gpu", "memory": 16e9, "lanes": 1,
//                 "send_overhead": 0, "receive_overhead": 0}],
//    "interconnect": {"kind": "host"}
//                  | {"kind": "links", "all": {"latency": 0.01, "bandwidth": 1e6},
//                     "links": [{"from": "gpu0", "to": "gpu1", "latency": 0, "bandwidth": 1e9}]}}
//
// Version 3: devices may state the `node` (machine) they are in, and `inside`, a cost as `all`,
// joins those of one node. A `price` per hour is information.
//
// Memory, times and bandwidths may have units ("80GB", "5us", "16GB/s"); bare numbers are bytes and
// the problem's unit of time. A kind may be the name of an entry of the catalogue (catalogue.h),
// which then gives the memory of its devices, and `all` the name of a link there. `kinds` may be
// left out. `"rates": {"mine": {"flops": "2TFLOPS", "bandwidth": "100GB/s", "launch": "5us"}}` says
// what times of ops are estimated by where the catalogue does not know a kind.
//
// Absent: memory and bandwidth are unlimited, lanes is 1, the rest 0. `all` joins every ordered
// pair of devices; a link of `links` replaces the pair's. Problem files use the same three keys.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/catalogue.h"
#include "problem/draft.h"

namespace placewright {

struct ClusterFile {
  Cluster cluster;
  std::map<std::string, PeakRates> rates;  // of kinds, to estimate times by
  std::string file;                        // as messages call it
  std::string digest;                      // of the file's bytes
  std::vector<std::string> warnings;
};

// Times are in `unit`, which only quantities with units need to know. Both throw InputError.
ClusterFile read_cluster(const std::string& path, TimeUnit unit = TimeUnit::milliseconds);
ClusterFile parse_cluster(std::string_view text, const std::string& origin,
                          TimeUnit unit = TimeUnit::milliseconds);

// What a kind can do at most, by the file or else by the catalogue; nullopt if neither knows it.
std::optional<PeakRates> rates_of(const ClusterFile& cluster, const std::string& kind);

std::string write_cluster(const Cluster& cluster);

// The problem on another cluster. Ops keep the times of the kinds of the same name, pins and tables
// of transfer times go with the devices of the same name. Throws InputError naming both files (the
// problem's is `origin`) where a kind has no times or a device is gone that something refers to.
ProblemDraft with_cluster(ProblemDraft draft, const ClusterFile& cluster,
                          const std::string& origin);

}  // namespace placewright
