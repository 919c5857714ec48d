#include "planners/refusals.h"

#include <fmt/format.h>

namespace placewright {

std::string refuses_many_edges(const Problem& problem) {
  constexpr std::size_t kMostEdges = 50'000;
  if (problem.edge_count() <= kMostEdges) return {};
  return fmt::format("its linear program is for at most {} edges, and there are {}", kMostEdges,
                     problem.edge_count());
}

std::string cannot_afford_program(const Problem& problem, const Control& control) {
  const auto size = static_cast<double>(problem.op_count() + problem.edge_count());
  constexpr double kSecondsEach = 5e-5;
  constexpr double kBytesEach = 4000;
  return control.cannot_afford(size * kSecondsEach, size * kBytesEach);
}

}  // namespace placewright
