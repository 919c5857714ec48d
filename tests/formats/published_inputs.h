// The published inputs under examples/ with their published sizes.

#pragma once

#include <string>
#include <vector>

namespace placewright::testing {

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

}  // namespace placewright::testing
