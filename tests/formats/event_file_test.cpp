#include "formats/event_file.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

namespace placewright {
namespace {

// RFC 3720, appendix B.4.
TEST(EventFile, Crc32cOfKnownBytes) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
}

TEST(EventFile, ARecordIsLengthCrcEventCrc) {
  const std::string file = event_file_header(1.5);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  ASSERT_EQ(file.size(), 8 + 4 + length + 4);
  const std::string_view event = std::string_view(file).substr(12, length);
  const auto unmasked = [&](std::size_t at) {
    std::uint32_t crc = 0;
    std::memcpy(&crc, file.data() + at, 4);
    crc -= 0xA282EAD8U;
    return crc >> 17 | crc << 15;
  };
  EXPECT_EQ(unmasked(8), crc32c(std::string_view(file).substr(0, 8)));
  EXPECT_EQ(unmasked(12 + length), crc32c(event));
  EXPECT_EQ(event.substr(0, 1), "\x09");
  EXPECT_EQ(event.substr(9),
            "\x1A\x0D"
            "brain.Event:2");
}

// As the protocol buffer compiler's output encodes the same event.
TEST(EventFile, AScalarIsAValueOfASummary) {
  const std::array<std::pair<std::string_view, float>, 1> scalars{{{"loss", 1.0F}}};
  const std::string file = scalar_event(0, 300, scalars);
  const std::string_view event = std::string_view(file).substr(12, file.size() - 16);
  const std::string expected(
      "\x09\0\0\0\0\0\0\0\0\x10\xAC\x02\x2A\x0D\x0A\x0B\x0A\x04loss\x15\0\0\x80\x3F", 27);
  EXPECT_EQ(event, expected);
}

}  // namespace
}  // namespace placewright
