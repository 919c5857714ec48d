// Scalars over steps as TensorBoard reads them: a file of records, each
//
//   length (8 bytes), masked CRC-32C of those, the event (a protocol buffer), masked CRC-32C of it
//
// all little-endian. An event has a wall time (field 1, double), a step (2, varint) and a summary
// (5) of values (1), each with a tag (1) and a number (2, float). The first event says
// "brain.Event:2" in its field 3. The CRC is rotated and shifted by a constant, as TFRecord files
// have it.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace placewright {

// What a file begins with.
std::string event_file_header(double wall_time);

// One event, to be appended.
std::string scalar_event(double wall_time, std::int64_t step,
                         std::span<const std::pair<std::string_view, float>> scalars);

std::uint32_t crc32c(std::string_view bytes);

}  // namespace placewright
