#include "cli/comparison.h"

#include <cmath>

#include <fmt/format.h>

namespace placewright::cli {

std::string comparison_text(double times, const std::string& rival) {
  constexpr double kNoise = 0.02;
  if (std::abs(times - 1) < kNoise) return fmt::format("as fast as {}", rival);
  if (times > 1) return fmt::format("{:.3g} times as fast as {}", times, rival);
  return fmt::format("SLOWER than {}, which is {:.3g} times as fast", rival, 1 / times);
}

}  // namespace placewright::cli
