// Small random problems for property tests.
//
// The same options and seed give the same draft on every machine: the generator is
// std::mt19937_64 and numbers are mapped by hand, not by the library's distributions. Every draft
// satisfies the invariants of Problem; whether a feasible plan exists is not promised when memory
// binds, links are missing or ops are unsupported.

#pragma once

#include <cstddef>
#include <cstdint>

#include "planners/random_numbers.h"
#include "problem/draft.h"

namespace placewright::testing {

struct RandomProblemOptions {
  Objective objective = Objective::latency;
  InterconnectKind interconnect = InterconnectKind::links;
  std::size_t ops = 8;
  std::size_t devices = 3;  // host: about a third are host devices, call-latency: exactly one
  std::size_t models = 1;
  double edge_probability = 0.3;  // of each ordered pair of ops of one model
  bool congestion = true;
  bool binding_memory = false;  // weights fill most of the devices' memory together
  bool unsupported = false;     // some ops cannot run on some kinds
  bool pins = false;
  bool colocation = false;
  bool shared_weights = false;
  bool lanes = false;      // devices run up to three ops at once
  bool overheads = false;  // devices pay for sending and receiving
  bool training = false;   // backward ops mirror forward ones; most share their colour class
  bool missing_links = false;
  bool integer_times = false;  // all times and overheads are whole numbers
  bool zero_times = false;     // some ops and transfers take no time
  bool resources = false;      // devices share resources, ops take shares of them
  bool spaces = false;         // some devices share a memory space
  bool one_space = false;      // all devices that may share a memory space do
  bool cuts = false;           // some tensors state their own overheads
};

ProblemDraft random_draft(const RandomProblemOptions& options, std::uint64_t seed);

// The same ops on nested sets of four cores in one memory: 0, 1, 2, 3, 0-1, 2-3 and 0-3. More cores
// help, each op in its own way; every tensor states what a cut costs.
ProblemDraft core_set_draft(RandomProblemOptions options, std::uint64_t seed);

// Tests use it for plans too.
using RandomSource = RandomNumbers;

}  // namespace placewright::testing
