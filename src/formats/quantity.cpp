#include "formats/quantity.h"

#include <charconv>
#include <cmath>

#include "problem/time_unit.h"

namespace placewright {
namespace {

struct NamedUnit {
  std::string_view name;
  double factor;
  Dimension dimension;
};

constexpr NamedUnit kUnits[] = {
    {"B", 1, Dimension::bytes},
    {"kB", 1e3, Dimension::bytes},
    {"MB", 1e6, Dimension::bytes},
    {"GB", 1e9, Dimension::bytes},
    {"TB", 1e12, Dimension::bytes},
    {"KiB", 0x1p10, Dimension::bytes},
    {"MiB", 0x1p20, Dimension::bytes},
    {"GiB", 0x1p30, Dimension::bytes},
    {"TiB", 0x1p40, Dimension::bytes},
    {"ns", 1e-9, Dimension::time},
    {"us", 1e-6, Dimension::time},
    {"µs", 1e-6, Dimension::time},
    {"ms", 1e-3, Dimension::time},
    {"s", 1, Dimension::time},
    {"GFLOPS", 1e9, Dimension::flops_per_time},
    {"TFLOPS", 1e12, Dimension::flops_per_time},
    {"PFLOPS", 1e15, Dimension::flops_per_time},
};

}  // namespace

std::optional<Quantity> quantity_in(std::string_view text) {
  Quantity quantity;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, quantity.value);
  if (error != std::errc{} || !std::isfinite(quantity.value) || quantity.value < 0) {
    return std::nullopt;
  }
  std::string_view name(rest, static_cast<std::size_t>(end - rest));
  if (name.starts_with(' ')) name.remove_prefix(1);
  const bool rate = name.ends_with("/s");
  if (rate) name.remove_suffix(2);
  for (const NamedUnit& unit : kUnits) {
    if (unit.name != name || (rate && unit.dimension != Dimension::bytes)) continue;
    quantity.value *= unit.factor;
    quantity.dimension = rate ? Dimension::bytes_per_time : unit.dimension;
    return quantity;
  }
  return std::nullopt;
}

std::optional<double> in_unit(const Quantity& quantity, TimeUnit unit) {
  if (quantity.dimension == Dimension::bytes) return quantity.value;
  if (unit == TimeUnit::none) return std::nullopt;
  const double seconds = milliseconds_in(unit) / 1000;
  return quantity.dimension == Dimension::time ? quantity.value / seconds
                                               : quantity.value * seconds;
}

}  // namespace placewright
