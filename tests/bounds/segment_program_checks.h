// Programs for segments against brute force: quick in segment_program_test.cpp, long in
// segment_program_full.cpp.

#pragma once

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "bounds/segment_program.h"
#include "coarsen/deletion.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright::testing {

// The shortest path over the programs of all passages.
inline double program_bound(const Problem& problem, double enough) {
  std::vector<double> distance{0.0};
  for (const CutSegment& segment : cut_segments(problem)) {
    const SegmentPaths paths(problem, segment);
    std::vector<double> next(paths.exits(), kInfinity);
    for (std::size_t entry = 0; entry < paths.entries(); ++entry) {
      for (std::size_t exit = 0; exit < paths.exits(); ++exit) {
        // Once with what paths say, once with what the program said.
        const double first = segment_program_bound(problem, paths, {entry, exit, 0, enough}, {});
        const double second =
            segment_program_bound(problem, paths, {entry, exit, first, enough}, {});
        next[exit] = std::min(next[exit], distance[entry] + std::max(first, second));
      }
    }
    distance = std::move(next);
  }
  return *std::ranges::min_element(distance);
}

struct SegmentRules {
  InterconnectKind interconnect;
  bool congestion;
  bool sharing;
};

inline std::vector<SegmentRules> segment_rules() {
  return {{InterconnectKind::links, true, false},
          {InterconnectKind::links, false, false},
          {InterconnectKind::host, true, false},
          {InterconnectKind::links, true, true},
          {InterconnectKind::host, true, true}};
}

// On random problems of the rules, with and without ops left out.
inline void expect_programs_below_optimum(const SegmentRules& rules, std::uint64_t first,
                                          std::uint64_t seeds) {
  RandomProblemOptions options;
  options.interconnect = rules.interconnect;
  options.congestion = rules.congestion;
  options.ops = 5;
  options.devices = 2;
  options.lanes = options.overheads = options.zero_times = options.unsupported = true;
  options.missing_links = options.interconnect == InterconnectKind::links;
  options.resources = options.spaces = options.cuts = rules.sharing;
  std::uint64_t compared = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    options.edge_probability = 0.2 + 0.2 * static_cast<double>(seed % 4);
    const Problem problem(random_draft(options, seed));
    const auto least = brute_force_value(problem);
    if (!least) continue;
    const double most = *least * (1 + 1e-9);
    EXPECT_LE(program_bound(problem, 4 * *least + 1), most) << "seed " << seed;
    EXPECT_LE(program_bound(problem, *least), most) << "seed " << seed;
    for (const Remainder& rest : remainders(problem)) {
      EXPECT_LE(program_bound(rest.problem, 4 * *least + 1), most) << "seed " << seed;
    }
    ++compared;
  }
  EXPECT_GT(compared, seeds / 4);
}

}  // namespace placewright::testing
