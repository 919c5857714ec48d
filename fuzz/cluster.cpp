#include "formats/cluster_file.h"
#include "reading.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  try {
    const ClusterFile file = parse_cluster(fuzzing::text_of(data, size), "fuzzed");
    fuzzing::require(parse_cluster(write_cluster(file.cluster), "written").cluster == file.cluster);
  } catch (const InputError&) {
  }
  return 0;
}
