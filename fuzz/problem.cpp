#include "formats/problem_formats.h"
#include "reading.h"

namespace {

using namespace placewright;

// Reads a problem in the given format, checks it and asks that our own format keeps it whole.
void read_as(const ProblemFormat& format, std::string_view text) {
  try {
    ProblemFile file =
        parse_problem(text, "fuzzed", ReadOptions{.format = std::string(format.name)});
    const std::string written = write_problem(file.draft);
    const Problem problem = build_problem(std::move(file));
    fuzzing::require(parse_problem(written, "written").draft == problem.draft());
  } catch (const InputError&) {
  }
}

}  // namespace

// Every format reads every input, so that a new one is fuzzed from its first day.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const ProblemFormat& format : problem_formats()) {
    read_as(format, fuzzing::text_of(data, size));
  }
  return 0;
}
