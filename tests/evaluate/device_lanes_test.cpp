#include "evaluate/device_lanes.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace placewright {
namespace {

// What DeviceLanes remembers must not change its answers: the same lanes without memory.
double earliest_on_any(const std::vector<Timeline>& lanes, double ready, double length) {
  std::vector<double> starts;
  for (const Timeline& lane : lanes) starts.push_back(lane.earliest(ready, length));
  return *std::ranges::min_element(starts);
}

void occupy_any(std::vector<Timeline>& lanes, double start, double length) {
  const auto is_free = [&](const Timeline& lane) { return lane.earliest(start, length) == start; };
  std::ranges::find_if(lanes, is_free)->occupy(start, length);
}

TEST(DeviceLanes, AnswerAsLanesThatRememberNothing) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<std::size_t>(1 + round % 3);
    DeviceLanes lanes(count);
    std::vector<Timeline> plain(count);
    for (int question = 0; question < 400; ++question) {
      // Questions wander forward and now and then far back; lengths are of very different size.
      const double ready = unit(random) < 0.2 ? 20 * unit(random) : 0.05 * question * unit(random);
      const double length = std::ldexp(0.5 + unit(random), -static_cast<int>(random() % 9));
      const double expected = earliest_on_any(plain, ready, length);
      const double known = lanes.known_earliest(ready, length);
      EXPECT_GE(known, ready);
      EXPECT_LE(known, expected);
      ASSERT_EQ(lanes.earliest(ready, length), expected);
      EXPECT_LE(lanes.known_earliest(ready, length), expected);
      if (random() % 2 == 0) continue;
      lanes.occupy(expected, length);
      occupy_any(plain, expected, length);
    }
  }
}

TEST(DeviceLanes, KnowAFullStretchAfterOneSearch) {
  DeviceLanes lanes(1);
  lanes.occupy(0, 2);
  lanes.occupy(2.25, 4);
  EXPECT_EQ(lanes.known_earliest(1, 1), 1);
  EXPECT_EQ(lanes.earliest(0.5, 1), 6.25);
  EXPECT_EQ(lanes.known_earliest(1, 1), 6.25);     // the gap at 2 is too short
  EXPECT_EQ(lanes.known_earliest(1, 1.25), 6.25);  // longer ones do not fit either
  EXPECT_EQ(lanes.known_earliest(1, 0.25), 1);     // shorter ones may
  EXPECT_EQ(lanes.known_earliest(0.25, 1), 0.25);  // nobody has looked there
  EXPECT_EQ(lanes.earliest(1, 0.25), 2);
}

TEST(DeviceLanes, AppendBehindWhatIsOnALane) {
  DeviceLanes lanes(2);
  lanes.append(0, 3);
  EXPECT_EQ(lanes.end(), 0);
  lanes.append(1, 1);  // the second lane, though it is the first that ends later
  EXPECT_EQ(lanes.end(), 2);
  lanes.append(2, 5);
  EXPECT_EQ(lanes.end(), 3);
}

}  // namespace
}  // namespace placewright
