// What devices share (docs/semantics.md, "Resource"): who holds how much of it, and when.

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.h"
#include "verify/findings.h"
#include "verify/intervals.h"

namespace placewright::verifying {

// Whether some device of the problem lists resources.
bool shares_resources(const Problem& problem);

// What ops that run as a whole (one op, a call, a stage on its devices) take: of each resource of
// each device the amount times the largest share of the ops. Each resource once.
std::vector<ResourceUse> demand_of(const Problem& problem, std::span<const DeviceId> devices,
                                   std::span<const OpId> ops);

// Whether it is more than there is, even with nothing beside it.
bool exceeds_capacity(const Problem& problem, const ResourceUse& use);

// Whoever takes time on a resource, for a sentence.
struct Holder {
  std::string name;
  std::vector<OpId> ops;
  std::vector<DeviceId> devices;
};

// What is held of each resource over time. Items are the caller's numbers for holders.
class ResourceBook {
 public:
  ResourceBook(const Problem& problem, double tolerance)
      : problem_(problem), tolerance_(tolerance), held_(problem.resource_count()) {}

  // An interval that is empty holds nothing.
  void hold(std::span<const ResourceUse> demand, double start, double end, std::size_t item);

  // The first moment, not before `earliest`, from which on the demand can be held for `length`
  // beside what is held already; infinite if it exceeds a capacity by itself.
  [[nodiscard]] double first_fit(std::span<const ResourceUse> demand, double earliest,
                                 double length) const;

  // Adds a `resource_exceeded` for each stretch of time in which too much is held of a resource.
  void check(const std::function<Holder(std::size_t)>& holder, Findings& findings) const;

 private:
  [[nodiscard]] bool fits_at(std::span<const ResourceUse> demand, double start, double end) const;

  const Problem& problem_;
  double tolerance_;  // of moments
  Table<ResourceId, std::vector<Holding>> held_;
};

}  // namespace placewright::verifying
