#include "formats/trace_file.h"
#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const TraceFile file = parse_trace(fuzzing::text_of(data, size), "fuzzed");
    fuzzing::require(!file.models.empty() && !file.trace.arrivals.empty());
  } catch (const InputError&) {
  }
  return 0;
}
