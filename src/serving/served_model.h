// A model as the scheduler sees it: how long its parts take, and what its users were promised.
//
// Times are milliseconds on all cores that serve, measured at the precision that the backend
// chooses.

#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace placewright {

// How many requests of a model may wait, and with how many bytes of inputs.
struct QueueLimit {
  std::size_t requests = 1000;
  double bytes = 1e9;
};

// What a model's requests are entitled to.
struct ServiceClass {
  int priority = 0;                      // the larger one first
  std::optional<double> objective = {};  // milliseconds from the arrival to the answer
  double weight = 1;                     // divides what the order compares
  QueueLimit queue = {};
};

struct ServedModel {
  std::string name;
  double whole = 0;                   // of one request, uncut
  std::vector<double> segments = {};  // of one request in segments; fewer than two: never cut
  std::map<std::size_t, double> batches = {};  // of that many requests at once, uncut
  // Of one request, uncut, on half of the cores while the other half computes too; 0: never run so.
  double on_half = 0;
  ServiceClass service = {};
  // What receiving and answering a request costs beside, where it is known: on the cores, and until
  // the client has the answer.
  double front = 0;
  double way = 0;

  [[nodiscard]] bool can_be_cut() const { return segments.size() > 1; }
};

}  // namespace placewright
