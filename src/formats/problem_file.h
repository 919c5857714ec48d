// Problem files: our own format and the published ones, recognised by what is in them.
//
//   placewright  our own JSON, version 1, below
//   moirai       devices[]{memory}, nodes[]{id, time[], memory}, edges[]{source, target, comm[][]}
//   msr          maxFPGAs, maxCPUs, maxSizePerFPGA, nodes[]{cpuLatency, ...}, edges[]{cost, ...}
//   talos        models[]{ops[]{cpu, gpu}, edges[][2]}
//
// Our own format, one record per line as we write it; what is optional has its default from
// draft.h:
//
//   {"placewright": "problem", "version": 1, "name": "bert", "unit": "ms", "objective": "latency",
//    "rules": {"contiguity": "joint", "transfers": "sequential", "training": "interleaved",
//              "memory": "resident", "congestion": true, "calls_per_device": 1, "max_replicas": 1,
//              "replica_bandwidth": 0, "schedule": "1f1b", "micro_batches": 0},
//    "kinds": …, "devices": …, "interconnect": …                      (cluster_file.h)
//    "models": [{"name": "bert", "arrival": 0, "weight": 1, "deadline": 9,
//                "source": {"path": "bert.xml", "digest": "…", "shapes": ["ids=1x128"]}}],
//    "ops": [{"name": "conv1", "type": "Convolution", "model": "bert", "memory": 1024,
//             "flops": 1e6, "spread": 0.02, "backward": false, "pin": "gpu0",
//             "time": [1.5, null]}],             by kind, or {"gpu": 1.5}; null: not supported
//    "tensors": [{"name": "x7", "shape": "1x1024 f32", "from": "conv1", "to": ["relu1"],
//                 "bytes": 4096,
//                 "time": 0.2,                   host interconnect
//                 "table": [[0, 1], [null, 0]]}],  links interconnect; null: no link
//    "colocate": [["conv1", "relu1"]],
//    "weights": [{"name": "embedding", "bytes": 1e6, "ops": ["gather", "project"]}],
//    "origin": ["op times: median of 20 runs on cpu:0"]}
//
// Ops and models are named, or numbered from 0. A file without kinds, devices and interconnect is
// completed by a cluster file; its times are then by kind name.
//
// Reading gives a draft; build_problem checks it. Whatever is wrong, in either step, is an
// InputError with the file and the place in it.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/read_options.h"
#include "problem/draft.h"
#include "problem/problem.h"

namespace placewright {

// Where a record of a draft was read from.
struct Place {
  std::string file;
  std::string pointer;
};
using PlaceOf = std::function<Place(DraftPart, std::size_t)>;

struct ProblemFile {
  ProblemDraft draft;
  std::string format;                 // its name (problem_formats.h)
  std::string file;                   // as messages call it
  std::string digest;                 // of the file's bytes
  std::string cluster_digest;         // of the cluster file's, where there is one
  std::vector<std::string> warnings;  // unknown keys in our own format
  std::vector<std::string> op_ids;    // by op, where the file has ids beside the names
  PlaceOf place_of;
};

// The records of the draft's cluster were read from this file: errors in them are its errors.
void take_places_of_cluster(ProblemFile& file, const std::string& cluster_file);

// Both throw InputError for what is wrong with a file, std::invalid_argument where no format has
// the name that the options give.
ProblemFile read_problem(const std::string& path, const ReadOptions& options = {});
ProblemFile parse_problem(std::string_view text, const std::string& origin,
                          const ReadOptions& options = {});

// The checked problem. Throws InputError naming the place of the record at fault. The second form
// takes a draft that was changed since it was read, or moved out of the file to save a copy.
Problem build_problem(ProblemFile file);
Problem build_problem(ProblemDraft draft, const ProblemFile& file);

// The draft in our own format; reading it gives an equal draft. One record per line.
std::string write_problem(const ProblemDraft& draft);

enum class FileKind { problem, cluster, plan };

// What a file is, as far as its keys tell: anything that looks like no plan and no cluster is taken
// for a problem. Throws InputError where the text is no JSON object.
FileKind kind_of_file(std::string_view text, const std::string& origin);

}  // namespace placewright
