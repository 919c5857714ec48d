// Small random problems for property tests.
//
// The same options and seed give the same draft on every machine: the generator is
// std::mt19937_64 and numbers are mapped by hand, not by the library's distributions. Every draft
// satisfies the invariants of Problem; whether a feasible plan exists is not promised when memory
// binds, links are missing or ops are unsupported.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

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
};

ProblemDraft random_draft(const RandomProblemOptions& options, std::uint64_t seed);

// Random numbers that are the same everywhere; tests use it for plans too.
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : engine_(seed) {}

  // 0 .. count-1
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  // least .. most
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  // [0, 1)
  double unit() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace placewright::testing
