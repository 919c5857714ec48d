#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  fuzzing::read_problem_text(fuzzing::text_of(data, size), Format::msr);
  return 0;
}
