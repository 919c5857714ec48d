#include "serving/rest_call.h"

#include "reading.h"

// The first two bytes say where JSON ends, as the header of the message does.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  if (size < 2) return 0;
  const std::size_t header = data[0] * 256U + data[1];
  const std::string_view body = fuzzing::text_of(data + 2, size - 2);
  for (const std::optional<std::size_t> length :
       {std::optional<std::size_t>(), std::optional<std::size_t>(header)}) {
    try {
      const InferenceCall call = parse_rest_call(body, length);
      std::size_t bytes = 0;
      for (const InferenceInput& input : call.inputs) {
        for (const std::byte each : input.data) bytes += static_cast<std::size_t>(each);
      }
      fuzzing::require(bytes <= 256 * 8 * (body.size() + 1));
    } catch (const BadInference&) {
    }
  }
  return 0;
}
