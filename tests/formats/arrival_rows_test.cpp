#include "formats/arrival_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"

namespace placewright {
namespace {

std::string complaint(std::string_view text) {
  try {
    static_cast<void>(parse_arrival_rows(text, "log.csv"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ArrivalRows, ReadsColumnsInAnyOrderAndSortsByTime) {
  const ArrivalTrace trace =
      parse_arrival_rows("model, time,deadline\r\nb,3.5,40\n\na,1,\n", "morning.csv");
  EXPECT_EQ(trace.name, "morning");
  ASSERT_EQ(trace.arrivals.size(), 2U);
  EXPECT_EQ(trace.arrivals[0].model, "a");
  EXPECT_FALSE(trace.arrivals[0].deadline.has_value());
  EXPECT_EQ(trace.arrivals[1].time, 3.5);
  EXPECT_EQ(trace.arrivals[1].deadline, 40);
}

TEST(ArrivalRows, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(complaint(""), testing::HasSubstr("there are no arrivals"));
  EXPECT_THAT(complaint("time,name\n"), testing::HasSubstr("no column is called 'model'"));
  EXPECT_THAT(complaint("time,model,time\n"), testing::HasSubstr("two columns"));
  EXPECT_THAT(complaint("time,model\n1,a\nx,a\n"),
              testing::AllOf(testing::HasSubstr("line 3"), testing::HasSubstr("found 'x'")));
  EXPECT_THAT(complaint("time,model\n-1,a\n"), testing::HasSubstr("time: expected"));
  EXPECT_THAT(complaint("time,model\nnan,a\n"), testing::HasSubstr("time: expected"));
  EXPECT_THAT(complaint("time,model\n1,\n"), testing::HasSubstr("model: there is none"));
  EXPECT_THAT(complaint("time,model,cancelled\n5,a,4\n"), testing::HasSubstr("before it arrives"));
}

TEST(ArrivalRows, AreNoJson) {
  EXPECT_TRUE(is_arrival_rows("time,model\n"));
  EXPECT_FALSE(is_arrival_rows(" {}"));
  EXPECT_FALSE(is_arrival_rows(""));
}

}  // namespace
}  // namespace placewright
