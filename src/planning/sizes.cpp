#include "planning/sizes.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace placewright {

std::string size_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::isinf(bytes)) return "unlimited";
  if (bytes < 10000) return fmt::format("{:.6g} {}", bytes, bytes == 1 ? "byte" : "bytes");
  std::size_t unit = 0;
  double amount = bytes / 1024;
  while (amount >= 1000 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  const int decimals = amount < 10 ? 2 : amount < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", amount, decimals, kUnits[unit]);
}

}  // namespace placewright
