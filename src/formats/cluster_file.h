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
// Absent: memory and bandwidth are unlimited, lanes is 1, the rest 0. `all` joins every ordered
// pair of devices; a link of `links` replaces the pair's. Problem files use the same three keys.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/draft.h"

namespace placewright {

struct ClusterFile {
  Cluster cluster;
  std::string file;    // as messages call it
  std::string digest;  // of the file's bytes
  std::vector<std::string> warnings;
};

// Both throw InputError.
ClusterFile read_cluster(const std::string& path);
ClusterFile parse_cluster(std::string_view text, const std::string& origin);

std::string write_cluster(const Cluster& cluster);

// The problem on another cluster. Ops keep the times of the kinds of the same name, pins and tables
// of transfer times go with the devices of the same name. Throws InputError naming both files (the
// problem's is `origin`) where a kind has no times or a device is gone that something refers to.
ProblemDraft with_cluster(ProblemDraft draft, const ClusterFile& cluster,
                          const std::string& origin);

}  // namespace placewright
