#include "profiling/robust_line.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

TEST(RobustLine, PointsFarOffDoNotMoveIt) {
  std::vector<LinePoint> points;
  for (int i = 0; i < 20; ++i) points.push_back({0.1 * i, 0.5 + 0.3 * 0.1 * i});
  points[3].y += 0.5;
  points[15].y += 0.8;
  const Line line = robust_line(points, 0.05);
  EXPECT_NEAR(line.offset, 0.5, 1e-2);
  EXPECT_NEAR(line.slope, 0.3, 1e-2);
}

TEST(RobustLine, NeitherNumberIsNegative) {
  const Line falling = robust_line({{1, 3}, {2, 2}, {3, 1}}, 0.1);
  EXPECT_EQ(falling.slope, 0);
  EXPECT_GT(falling.offset, 0);
  const Line below = robust_line({{1, 0.1}, {2, 2}, {3, 4}}, 0.1);
  EXPECT_EQ(below.offset, 0);
  EXPECT_GT(below.slope, 0);
}

TEST(RobustLine, NorWhereAllPointsAre) {
  for (const auto& points : {std::vector<LinePoint>{{1, -1}, {2, -2}, {3, -3}},
                             {{1, -3}, {2, -2}, {3, -1}},
                             {{2, -1}}}) {
    const Line line = robust_line(points, 0.1);
    EXPECT_EQ(line.offset, 0);
    EXPECT_GE(line.slope, 0);
  }
}

TEST(RobustLine, OfNoPointsIsZero) {
  const Line line = robust_line({}, 1);
  EXPECT_EQ(line.at(5), 0);
}

}  // namespace
}  // namespace placewright
