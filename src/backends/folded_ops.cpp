#include "backends/folded_ops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>

namespace placewright {
namespace {

using Types = std::unordered_set<std::string_view>;

const Types kViews = {"Reshape", "Squeeze", "Unsqueeze"};
const Types kForms = {"Reshape", "Squeeze", "Unsqueeze",   "Transpose",    "Convert",
                      "Slice",   "Split",   "ConvertLike", "StridedSlice", "VariadicSplit",
                      "Tile",    "ShapeOf", "Broadcast",   "FakeQuantize"};
const Types kElementwise = {"Abs",       "Add",      "Clamp",   "Cos",      "Divide",   "Elu",
                            "Erf",       "Exp",      "Floor",   "Gelu",     "HSigmoid", "HSwish",
                            "LeakyRelu", "Log",      "Maximum", "Minimum",  "Mish",     "Multiply",
                            "Negative",  "PRelu",    "Power",   "Relu",     "Selu",     "Sigmoid",
                            "Sin",       "SoftPlus", "Sqrt",    "Subtract", "Swish",    "Tanh"};

std::vector<bool> of_shapes_alone(const ModelGraph& graph) {
  std::vector<bool> alone(graph.ops.size(), false);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const auto& inputs = graph.ops[op].inputs;
    const auto known = [&](const TensorKey& key) { return !key.is_model_input() && alone[key.op]; };
    alone[op] =
        graph.ops[op].type == "ShapeOf" || (!inputs.empty() && std::ranges::all_of(inputs, known));
  }
  return alone;
}

// By op: the first that reads it, or itself.
std::vector<std::size_t> first_readers(const ModelGraph& graph) {
  std::vector<std::size_t> readers(graph.ops.size());
  std::iota(readers.begin(), readers.end(), std::size_t{0});
  for (std::size_t op = graph.ops.size(); op-- > 0;) {
    for (const TensorKey& input : graph.ops[op].inputs) {
      if (!input.is_model_input()) readers[input.op] = op;
    }
  }
  return readers;
}

class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t root(std::size_t op) {
    while (parent_[op] != op) op = parent_[op] = parent_[parent_[op]];
    return op;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

std::vector<bool> takes_no_time(const ModelGraph& graph) {
  std::vector<bool> nothing = of_shapes_alone(graph);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (kViews.contains(graph.ops[op].type)) nothing[op] = true;
  }
  return nothing;
}

std::vector<std::vector<OpId>> folded_together(const ModelGraph& graph) {
  const std::vector<bool> of_shapes = of_shapes_alone(graph);
  const std::vector<std::size_t> readers = first_readers(graph);
  // Inputs that are computed from shapes are constants for a runtime.
  const auto data_of = [&](std::size_t op) {
    std::vector<TensorKey> data;
    std::ranges::copy_if(graph.ops[op].inputs, std::back_inserter(data), [&](const TensorKey& key) {
      return key.is_model_input() || !of_shapes[key.op];
    });
    return data;
  };
  Groups groups(graph.ops.size());
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (of_shapes[op]) {
      groups.join(op, readers[op]);
      continue;
    }
    const std::string& type = graph.ops[op].type;
    const std::vector<TensorKey> data = data_of(op);
    const bool folds = data.size() == 1 && (kForms.contains(type) || kElementwise.contains(type));
    if (folds) groups.join(op, data[0].is_model_input() ? readers[op] : data[0].op);
  }
  std::map<std::size_t, std::vector<OpId>> members;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) members[groups.root(op)].emplace_back(op);
  std::vector<std::vector<OpId>> found;
  for (auto& [root, ops] : members) {
    if (ops.size() > 1) found.push_back(std::move(ops));
  }
  return found;
}

}  // namespace placewright
