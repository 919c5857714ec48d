#include "formats/event_file.h"

#include <array>
#include <bit>
#include <cstring>

namespace placewright {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0);
    table[byte] = value;
  }
  return table;
}

// The protocol buffer wire types that occur here.
enum class Wire : std::uint64_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7F));
  out += static_cast<char>(value);
}

void put_tag(std::string& out, std::uint64_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<std::uint64_t>(wire));
}

template <class Number>
void put_raw(std::string& out, Number number) {
  std::array<char, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), &number, sizeof(Number));
  out.append(bytes.data(), bytes.size());
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_tag(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string record(std::string_view event) {
  std::string out;
  put_raw(out, static_cast<std::uint64_t>(event.size()));
  put_raw(out, masked_crc(out));
  out += event;
  put_raw(out, masked_crc(event));
  return out;
}

std::string event_at(double wall_time) {
  std::string event;
  put_tag(event, 1, Wire::eight_bytes);
  put_raw(event, wall_time);
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t value = ~0U;
  for (const char byte : bytes) {
    value = kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (value >> 8);
  }
  return ~value;
}

std::string event_file_header(double wall_time) {
  std::string event = event_at(wall_time);
  put_bytes(event, 3, "brain.Event:2");
  return record(event);
}

std::string scalar_event(double wall_time, std::int64_t step,
                         std::span<const std::pair<std::string_view, float>> scalars) {
  std::string event = event_at(wall_time);
  put_tag(event, 2, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(step));
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    put_tag(value, 2, Wire::four_bytes);
    put_raw(value, number);
    put_bytes(summary, 1, value);
  }
  put_bytes(event, 5, summary);
  return record(event);
}

}  // namespace placewright
