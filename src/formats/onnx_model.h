// An ONNX file as a graph of nodes, and models made of some of them.
//
// It reads only what a cut needs: what each node reads and makes, sub-graphs of its attributes
// included, and which tensors are constants of the file. Nodes are copied as they are, and every
// part keeps the file's opsets, functions and metadata. Weights that lie in other files are put
// into the part, so that it needs nothing else. A part of more than 2 GiB is refused, because
// protobuf cannot hold it.

#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

struct OnnxNode {
  std::string type;  // "Conv", …
  std::vector<std::string>
      reads;  // tensors by name, those that its sub-graphs take from outside too
  std::vector<std::string> makes;
  std::string_view bytes;  // the message
};

// An input or output of a part.
struct OnnxPort {
  std::string name;
  std::string element;  // "f32", "i64", …
  std::vector<std::size_t> shape;
};

struct OnnxPart {
  std::string name;
  std::vector<std::size_t> nodes = {};  // ascending
  std::vector<OnnxPort> inputs = {};
  std::vector<OnnxPort> outputs = {};
  std::map<std::string, std::vector<long>> vectors = {};  // tensors that become constants
};

class OnnxModel {
 public:
  // Throws InputError.
  explicit OnnxModel(const std::string& path);
  OnnxModel(const OnnxModel&) = delete;
  OnnxModel& operator=(const OnnxModel&) = delete;

  [[nodiscard]] const std::vector<OnnxNode>& nodes() const {
    return nodes_;
  }  // as the file has them
  [[nodiscard]] bool is_weight(const std::string& tensor) const {
    return weights_.contains(tensor);
  }
  [[nodiscard]] const std::vector<std::string>& outputs() const { return outputs_; }

  // The bytes of a model file. Throws InputError for weights that cannot be read, or if it is too
  // large.
  [[nodiscard]] std::string part(const OnnxPart& part) const;

  // The whole file, each node with a metadata entry `key`; nodes whose value is empty as they are.
  [[nodiscard]] std::string annotated(std::string_view key,
                                      const std::vector<std::string>& value_of_node) const;
  // Whether weights lie in files beside this one.
  [[nodiscard]] bool has_files_beside() const;

 private:
  void read_graph(std::string_view graph);

  std::string path_;
  std::string bytes_;
  std::vector<std::string_view> other_fields_;  // of the model, all but its graph
  std::string_view graph_;
  std::vector<OnnxNode> nodes_;
  std::map<std::string, std::string_view> weights_;  // messages by name
  std::map<std::string, std::string_view> inputs_;   // messages by name, those of weights too
  std::vector<std::string> outputs_;
};

// The whole numbers of an attribute, by name: of "start" and "end", say.
std::map<std::string, long> whole_attributes(const OnnxNode& node);

}  // namespace placewright
