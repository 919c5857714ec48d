#include "evaluate/device_lanes.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace placewright {
namespace {

constexpr int kDroppedBits = 51;  // of the 52 behind the leading one

std::uint64_t class_of(double length) {
  return std::bit_cast<std::uint64_t>(length) >> kDroppedBits;
}
double shortest_of(std::uint64_t lengths) {
  return std::bit_cast<double>(lengths << kDroppedBits);
}

}  // namespace

double DeviceLanes::search(double ready, double length) const {
  double start = std::numeric_limits<double>::infinity();
  for (const Timeline& lane : lanes_) start = std::min(start, lane.earliest(ready, length));
  return start;
}

double DeviceLanes::known_earliest(double ready, double length) const {
  const LengthClass lengths = class_of(length);
  const FullStretch& full = full_[lengths % kClasses];
  const bool inside = full.lengths == lengths && full.from <= ready && ready < full.to;
  return inside ? full.to : ready;
}

double DeviceLanes::earliest(double ready, double length) {
  const LengthClass lengths = class_of(length);
  FullStretch& full = full_[lengths % kClasses];
  if (full.lengths != lengths) full = {lengths, ready, ready};
  const bool inside = full.from <= ready && ready <= full.to;
  const double start = search(inside ? full.to : ready, shortest_of(lengths));
  if (inside) {
    full.to = start;
  } else if (ready > full.to) {  // what is asked later is later for the most part
    full = {lengths, ready, start};
  } else if (start >= full.from) {
    full.from = ready;
  }
  return search(start, length);
}

double DeviceLanes::end() const {
  double end = std::numeric_limits<double>::infinity();
  for (const Timeline& lane : lanes_) end = std::min(end, lane.end());
  return end;
}

void DeviceLanes::occupy(double start, double length) {
  for (Timeline& lane : lanes_) {
    if (lane.earliest(start, length) != start) continue;
    lane.occupy(start, length);
    return;
  }
}

void DeviceLanes::append(double start, double length) {
  for (Timeline& lane : lanes_) {
    if (lane.end() > start) continue;
    lane.occupy(start, length);
    return;
  }
}

}  // namespace placewright
