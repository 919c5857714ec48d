#include "cli/measured_text.h"

#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/text.h"
#include "problem/time_unit.h"

namespace placewright::cli {
namespace {

std::string mark_of(const Measured& measured) {
  if (measured.valid()) return {};
  return measured.disturbed() ? ", disturbed" : ", unsteady";
}

}  // namespace

std::string measured_text(const Measured& measured) {
  if (measured.median <= 0) return "not measured";
  return value_text(measured.median, TimeUnit::milliseconds) + mark_of(measured);
}

std::string rate_text(const Measured& per_sample) {
  if (per_sample.median <= 0) return "not measured";
  return fmt::format("{} samples/s{}", number_text(1000 / per_sample.median), mark_of(per_sample));
}

void complain(const Measured& measured, const char* longer) {
  tell(
      fmt::format("placewright: the measurement is not valid: {}; stop other programs, or measure "
                  "longer with '{}'\n",
                  doubt_of(measured), longer));
}

}  // namespace placewright::cli
