#include "report/line_chart.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(LineChart, DrawsEveryPointAndLeavesGaps) {
  const double gap = std::numeric_limits<double>::infinity();
  const LineChart chart{
      "a < b", "",   "x",
      "y",     true, {{"one", {{0.1, 3, 1}, {1, gap, 0}, {10, 2, 1}}}, {"two", {{1, 5, 0}}}}};
  const std::string text = svg_text(std::vector{chart});
  EXPECT_EQ(count(text, "<circle"), 3U);
  EXPECT_THAT(text, HasSubstr("a &lt; b"));
  EXPECT_THAT(text, HasSubstr(">two</text>"));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(LineChart, OfNothingIsStillAPicture) {
  const std::string text = svg_text(std::vector{LineChart{}});
  EXPECT_THAT(text, HasSubstr("</svg>"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace placewright
