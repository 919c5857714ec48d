// A trained policy: the weights of a network, what the network is made of, and where it comes from.
//
// Its bytes are data and never code: a header, facts as text, tensors as shapes and raw
// little-endian 32-bit floats. Reading trusts nothing: lengths are checked against the bytes there
// are before anything is allocated, the digest must agree, and every weight must be finite.
//
//   bytes   what
//   19      "placewright policy\n"
//   4       version, 1
//   8       length of the body
//   8       FNV-1a (64 bits) of the body, against damage
//   body    facts: count, then key and value; weights; training state: count, then for each tensor
//           its name, rank, dimensions (8 bytes each) and values. Counts and ranks have 4 bytes; a
//           text is its length (4 bytes) and its bytes
//
// The training state is what a training needs to go on; a finished policy has none.

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "planners/learned/learner.h"

namespace placewright::learned {

struct Policy {
  std::map<std::string, std::string> facts;
  Weights weights;
  Weights training_state = {};

  friend bool operator==(const Policy&, const Policy&) = default;
};

std::string encode(const Policy& policy);

// The bytes of the policy that is part of the program.
std::string_view shipped_policy();

// Throws std::invalid_argument with one sentence: no policy, another version, damaged, hostile.
Policy decode(std::string_view bytes);

// What the network and its features are made of, as facts, and back. `architecture_of` changes only
// that part of the options; it throws std::invalid_argument for a network that there is not.
void write_architecture(const LearnerOptions& options, const PlacementGraphOptions& features,
                        Policy& policy);
void architecture_of(const Policy& policy, LearnerOptions& options,
                     PlacementGraphOptions& features);

}  // namespace placewright::learned
