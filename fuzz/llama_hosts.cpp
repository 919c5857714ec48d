#include "formats/serving_hosts.h"
#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const HostsFile file = read_hosts(fuzzing::text_of(data, size), "fuzzed");
    const HostsFile again = read_hosts(write_hosts(file), "written");
    fuzzing::require(again.hosts == file.hosts && again.measured == file.measured);
  } catch (const InputError&) {
  }
  return 0;
}
