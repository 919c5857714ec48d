#include "formats/gguf.h"

#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const GgufFile file = parse_gguf(fuzzing::text_of(data, size), "fuzzed", size);
    const LayeredModel model = layered_model(file, 100, 4);
    fuzzing::require(model.layers.size() == file.layers());
  } catch (const InputError&) {
  }
  return 0;
}
