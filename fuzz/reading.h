// What every fuzz target asks of a reader: whatever the bytes, it answers with a value or with an
// InputError, in little time and memory; and what it accepts can be written and read again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/input_error.h"
#include "formats/problem_file.h"

namespace placewright::fuzzing {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the run with a trace; libFuzzer keeps the input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace placewright::fuzzing
