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

// Reads a problem in the given format, checks it and asks that our own format keeps it whole.
inline void read_problem_text(std::string_view text, Format format) {
  ReadOptions options;
  options.format = format;
  try {
    const ProblemFile file = parse_problem(text, "fuzzed", options);
    const Problem problem = build_problem(file);
    const std::string written = write_problem(file.draft);
    require(parse_problem(written, "written").draft == problem.draft());
  } catch (const InputError&) {
  }
}

}  // namespace placewright::fuzzing
