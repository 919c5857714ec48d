// The published inputs under examples/, and small files for tests to write.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

namespace placewright::testing {

inline std::string example(const std::string& name) {
  return std::string(PLACEWRIGHT_SOURCE_DIR) + "/examples/" + name;
}

struct PublishedInput {
  std::string path;
  std::size_t ops;
  std::size_t edges;
  std::size_t devices;
};

inline const std::vector<PublishedInput>& published_inputs() {
  static const std::vector<PublishedInput> inputs = {
      {"moirai/example-1.json", 14, 19, 3},
      {"moirai/GoogLeNet.json", 141, 167, 4},
      {"moirai/inceptionv4.json", 491, 545, 4},
      {"msr/throughput/LayerGraphs/bert24_inference.json", 32, 55, 7},
      {"msr/throughput/LayerGraphs/bert24_training.json", 64, 110, 7},
      {"msr/throughput/LayerGraphs/resnet50_inference.json", 177, 193, 7},
      {"msr/throughput/LayerGraphs/gnmt_inference.json", 96, 122, 7},
      {"msr/throughput/LayerGraphs/gnmt_training.json", 192, 244, 7},
      {"msr/throughput/OperatorGraphs/resnet50_inference.json", 604, 619, 7},
      {"msr/throughput/OperatorGraphs/bert_l-3_inference.json", 235, 250, 4},
      {"msr/throughput/OperatorGraphs/bert_l-3_training.json", 600, 817, 4},
      {"msr/latency/LayerGraphs/bert24_inference.json", 32, 55, 13},
      {"msr/latency/LayerGraphs/gnmt_inference.json", 96, 122, 14},
      {"msr/latency/LayerGraphs/resnet50_inference.json", 177, 193, 22},
      {"msr/latency/OperatorGraphs/bert_l-3_inference.json", 235, 250, 12},
      {"msr/latency/OperatorGraphs/bert_l-6_inference.json", 418, 448, 14},
      {"talos/six_ops.json", 6, 4, 2},
      {"talos/two_chains.json", 64, 62, 2},
  };
  return inputs;
}

// A folder of its own, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "placewright-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator{}));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace placewright::testing
