#include "formats/array_files.h"
#include "reading.h"

// One array, and archives of several.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  const std::string_view bytes = fuzzing::text_of(data, size);
  try {
    const Array array = parse_npy(bytes, "fuzzed");
    fuzzing::require(fits(array, array.bytes.size()));
    fuzzing::require(parse_npy(npy_bytes(array), "written").bytes == array.bytes);
  } catch (const InputError&) {
  }
  try {
    for (const auto& [name, array] : parse_npz(bytes, "fuzzed")) {
      fuzzing::require(fits(array, array.bytes.size()));
    }
  } catch (const InputError&) {
  }
  return 0;
}
