// A time that was measured many times, and the statistics that every part of the program uses for
// it.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace placewright {

// In milliseconds.
struct Measured {
  double median = 0;  // of all runs if few were kept; 0: nothing was measured
  double low = 0;     // first decile
  double high = 0;    // last decile
  std::size_t kept = 0;
  std::size_t rejected = 0;  // others used the device meanwhile
  bool watched = true;       // false: a device cannot tell whether others used it

  // At least half of the runs were kept.
  [[nodiscard]] bool undisturbed() const { return kept > 0 && rejected <= kept; }
  // Others took so many of the runs that the rest tells nothing: most of them, or all but one or
  // two.
  [[nodiscard]] bool disturbed() const;
  // There is no doubt about it: `doubt_of`.
  [[nodiscard]] bool valid() const;
  // Others had the device all along: none of the runs counts, and the statistics stay what was
  // seen.
  void reject() {
    rejected += kept;
    kept = 0;
  }
  // The distance of the deciles, relative to the median.
  [[nodiscard]] double spread() const { return median > 0 ? (high - low) / median : 0; }

  friend bool operator==(const Measured&, const Measured&) = default;
};

// Of several runs fewer tell nothing.
inline constexpr std::size_t kFewestKept = 3;
// Between the deciles, relative to the median. More is the mark of others, also where no probe saw
// them.
inline constexpr double kLargestSpread = 0.4;

// Why a measurement should not be believed, in one sentence: too few undisturbed runs, or too much
// spread. Empty: it may be.
std::string doubt_of(const Measured& runs);

// Of values in any order, linear between neighbours; 0 of none.
double quantile(std::vector<double> values, double fraction);
double median(std::vector<double> values);

Measured measured(std::vector<double> kept, std::size_t rejected);
// The same with what was rejected: where that is most, the statistics are those of all, which tells
// what was seen although it is not valid.
Measured measured(std::vector<double> kept, const std::vector<double>& rejected);

}  // namespace placewright
