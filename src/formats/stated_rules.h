// The object `rules` of our own files. Problem files hold what differs from the defaults, plans
// everything: the problem's file may say otherwise.

#pragma once

#include <array>

#include "formats/json_fields.h"
#include "problem/objective.h"

namespace placewright {

template <>
inline constexpr auto kFields<Rules> =
    std::tuple{optional("contiguity", &Rules::contiguity),
               optional("transfers", &Rules::transfers),
               optional("training", &Rules::training),
               optional("memory", &Rules::memory),
               optional("congestion", &Rules::congestion),
               optional("calls_per_device", &Rules::calls_per_device),
               optional("max_replicas", &Rules::max_replicas),
               optional("replica_bandwidth", &Rules::replica_bandwidth),
               optional("schedule", &Rules::schedule)
                   .says("How many micro-batches a stage in training holds; version 3"),
               optional("micro_batches", &Rules::micro_batches)
                   .says("Micro-batches of a step; 0: a stream without end; version 3")
                   .or_zero()};

// What a file states of the rules; the others stay as they are.
class StatedRules {
 public:
  StatedRules() = default;
  explicit StatedRules(JsonValue object);

  [[nodiscard]] Rules over(Rules others) const;

 private:
  Rules rules_;
  std::array<bool, std::tuple_size_v<decltype(kFields<Rules>)>> stated_{};
};

}  // namespace placewright
