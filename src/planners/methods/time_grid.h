// Times as integers, for solvers that count.
//
// A grid multiplies times by a scale and rounds down. Sums of rounded lengths never exceed the
// rounded sum, so a schedule in real times stays a schedule on the grid, and what is least on the
// grid bounds what is least in real time.
//
// `for_times` looks for a decimal grid on which all times are whole (published inputs have few
// digits); else it makes the grid fine enough that `activities` roundings together stay below 1e-6
// / 4 of `reference`.

#pragma once

#include <cstdint>
#include <span>

namespace placewright {

class TimeGrid {
 public:
  TimeGrid() = default;

  // `reference`: a value that no schedule is below. `largest`: no schedule of interest is above.
  static TimeGrid for_times(std::span<const double> times, double reference, double largest,
                            std::size_t activities);

  // Rounded down; within 1e-6 of a whole number, to that.
  [[nodiscard]] std::int64_t units(double time) const;
  [[nodiscard]] double time(double units) const { return units / scale_; }
  [[nodiscard]] bool exact() const { return exact_; }

 private:
  double scale_ = 1;
  bool exact_ = true;
};

}  // namespace placewright
