// Characters on which a terminal acts are shown or written so that it does not.

#include "formats/printable.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/json_text.h"
#include "formats/plan_rows.h"

namespace placewright {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "conv_1/Relu:0", "größe", "模型", "😀", "e\u0301"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(with_escapes(text), text);
  }
}

TEST(Printable, TakesControlCharactersAndOverridesOfDirection) {
  EXPECT_EQ(printable("a\x1b[31mb\x07"), "a?[31mb?");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("a\nb\tc\r"), "a?b?c?");
  EXPECT_EQ(printable("\x7f"), "?");
  EXPECT_EQ(printable("\u0085\u009b31m"), "??31m");
  EXPECT_EQ(printable("\u061c\u200e\u200f\u2028\u2029"), "?????");
  EXPECT_EQ(printable("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"), "?????????");
}

TEST(Printable, TakesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\x9b\x33\x31m"), "a?31m");   // CSI of an 8-bit terminal
  EXPECT_EQ(printable("\xc3"), "?");                 // cut off
  EXPECT_EQ(printable("\xc0\x9b"), "??");            // overlong
  EXPECT_EQ(printable("\xe0\x82\x9b"), "???");       // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(printable("\xff"), "?");
}

TEST(Printable, EscapesKeepWhatTheyStandFor) {
  const std::string name = "a\x1b[31m\u009b\u202e\x7f\n\"\\";
  const std::string text = json_text(nlohmann::ordered_json(name), -1);
  EXPECT_EQ(text, printable(text));
  EXPECT_EQ(nlohmann::json::parse(text), name);
  std::string quoted;
  append_quoted(quoted, name);
  EXPECT_EQ(quoted, text);
}

TEST(Printable, CsvKeepsLineFeedsInQuotes) {
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_field("a\x1b,\r"), "\"a\\u001b,\\u000d\"");
}

}  // namespace
}  // namespace placewright
