#include "formats/speedup_table.h"

#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const SpeedUpTable table = parse_speed_up_table(fuzzing::text_of(data, size), "fuzzed.csv");
    for (const SpeedUpRow& row : table.rows) fuzzing::require(row.speed_up >= 0);
  } catch (const InputError&) {
  }
  return 0;
}
