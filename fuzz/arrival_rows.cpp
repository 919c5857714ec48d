#include "formats/arrival_rows.h"

#include "formats/input_error.h"
#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const ArrivalTrace trace = parse_arrival_rows(fuzzing::text_of(data, size), "fuzzed");
    fuzzing::require(!trace.arrivals.empty());
  } catch (const InputError&) {
  }
  return 0;
}
