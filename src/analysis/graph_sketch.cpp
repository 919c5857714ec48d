#include "analysis/graph_sketch.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

namespace placewright {
namespace {

using Number = std::uint32_t;

constexpr std::array<std::string_view, 10> kMixedTypes{
    "MatMul", "Add",     "Convolution", "Relu",   "Multiply",
    "Gelu",   "Softmax", "Reshape",     "MatMul", "Convolution"};

class Sketch {
 public:
  explicit Sketch(std::size_t ops) { ops_.reserve(ops); }

  Number add(std::string name, std::string_view type, int role = -1) {
    ops_.push_back({std::move(name), type, role});
    return static_cast<Number>(ops_.size() - 1);
  }
  // An op of a random type.
  Number add_mixed(RandomNumbers& random) {
    return add(fmt::format("op{}", ops_.size()), kMixedTypes[random.below(kMixedTypes.size())]);
  }
  // An op that reads `before`.
  Number add_after(Number before, std::string name, std::string_view type, int role = -1) {
    const Number added = add(std::move(name), type, role);
    connect(before, added);
    return added;
  }
  // A product of two activations has no weights.
  void leave_weights_out(Number op) { ops_[op].has_weights = false; }
  void connect(Number from, Number to) { ops_[from].readers.push_back(to); }

  [[nodiscard]] std::size_t size() const { return ops_.size(); }
  std::vector<SketchOp> take() { return std::move(ops_); }

 private:
  std::vector<SketchOp> ops_;
};

// The first op of each layer, and one past the last op. Layer sizes differ by at most one.
std::vector<std::size_t> layer_begins(std::size_t ops, std::size_t layers) {
  std::vector<std::size_t> begins(layers + 1);
  for (std::size_t layer = 0; layer <= layers; ++layer) begins[layer] = layer * ops / layers;
  return begins;
}

// Draws edges from a lower layer to a higher one, none twice.
class LayeredEdges {
 public:
  LayeredEdges(Sketch& sketch, std::vector<std::size_t> begins, std::size_t edges)
      : sketch_(sketch), begins_(std::move(begins)), layer_of_(begins_.back()) {
    present_.reserve(2 * edges);
    for (std::size_t layer = 0; layer + 1 < begins_.size(); ++layer) {
      std::fill(layer_of_.begin() + static_cast<std::ptrdiff_t>(begins_[layer]),
                layer_of_.begin() + static_cast<std::ptrdiff_t>(begins_[layer + 1]), layer);
    }
  }

  [[nodiscard]] std::size_t count() const { return present_.size(); }

  void join_layers(RandomNumbers& random) {
    for (std::size_t to = begins_[1]; to < begins_.back(); ++to) {
      add(in_layer(layer_of_[to] - 1, random), to);
    }
  }

  // Mostly from the layer before; after many misses the next free pair is taken, so that dense
  // graphs are finished too.
  void add_one(RandomNumbers& random) {
    const std::size_t first = begins_[1];
    const std::size_t last = begins_.back();
    for (int attempt = 0; attempt < 64; ++attempt) {
      const std::size_t to = random.between(first, last - 1);
      const std::size_t layer = layer_of_[to];
      const std::size_t above = random.below(4) > 0 ? layer - 1 : random.below(layer);
      if (add(in_layer(above, random), to)) return;
    }
    std::size_t to = random.between(first, last - 1);
    while (true) {
      for (std::size_t from = 0; from < begins_[layer_of_[to]]; ++from) {
        if (add(from, to)) return;
      }
      to = to + 1 < last ? to + 1 : first;
    }
  }

 private:
  std::size_t in_layer(std::size_t layer, RandomNumbers& random) {
    return random.between(begins_[layer], begins_[layer + 1] - 1);
  }
  bool add(std::size_t from, std::size_t to) {
    if (!present_.insert(static_cast<std::uint64_t>(from) << 32U | to).second) return false;
    sketch_.connect(static_cast<Number>(from), static_cast<Number>(to));
    return true;
  }

  Sketch& sketch_;
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> layer_of_;
  std::unordered_set<std::uint64_t> present_;
};

// A part of a series-parallel graph: one way in, one way out.
struct Part {
  Number first;
  Number last;
};

Part series_parallel_part(Sketch& sketch, std::size_t ops, RandomNumbers& random) {
  if (ops == 1) {
    const Number only = sketch.add_mixed(random);
    return {only, only};
  }
  if (ops < 4 || random.chance(0.5)) {
    // Parts of at least a quarter keep the recursion as deep as a logarithm.
    const std::size_t front = random.between((ops + 3) / 4, ops - (ops + 3) / 4);
    const Part before = series_parallel_part(sketch, front, random);
    const Part after = series_parallel_part(sketch, ops - front, random);
    sketch.connect(before.last, after.first);
    return {before.first, after.last};
  }
  const std::size_t inside = ops - 2;
  const std::size_t branches = random.between(2, std::min<std::size_t>(inside, 4));
  const Number fork = sketch.add_mixed(random);
  std::vector<Number> ends;
  for (std::size_t branch = 0; branch < branches; ++branch) {
    const std::size_t begin = branch * inside / branches;
    const std::size_t end = (branch + 1) * inside / branches;
    const Part part = series_parallel_part(sketch, end - begin, random);
    sketch.connect(fork, part.first);
    ends.push_back(part.last);
  }
  const Number join = sketch.add_mixed(random);
  for (const Number end : ends) sketch.connect(end, join);
  return {fork, join};
}

constexpr std::size_t kTransformerBlock = 20;

// One encoder block, pre-normalised; `input` is the residual stream.
Number add_transformer_block(Sketch& sketch, std::size_t block, Number input) {
  int role = 0;
  const auto after = [&](Number before, std::string_view name, std::string_view type) {
    return sketch.add_after(before, fmt::format("block{}.{}", block, name), type, role++);
  };
  const Number normal = after(input, "norm1", "LayerNormalization");
  const Number query = after(after(normal, "query", "MatMul"), "query_bias", "Add");
  const Number key = after(after(normal, "key", "MatMul"), "key_bias", "Add");
  const Number value = after(after(normal, "value", "MatMul"), "value_bias", "Add");
  const Number scores = after(query, "scores", "MatMul");
  sketch.connect(key, scores);
  sketch.leave_weights_out(scores);
  const Number weights = after(scores, "softmax", "Softmax");
  const Number context = after(weights, "context", "MatMul");
  sketch.connect(value, context);
  sketch.leave_weights_out(context);
  const Number projected = after(after(context, "project", "MatMul"), "project_bias", "Add");
  const Number attended = after(projected, "residual1", "Add");
  sketch.connect(input, attended);
  const Number second = after(attended, "norm2", "LayerNormalization");
  const Number wide = after(after(second, "up", "MatMul"), "up_bias", "Add");
  const Number active = after(wide, "gelu", "Gelu");
  const Number narrow = after(after(active, "down", "MatMul"), "down_bias", "Add");
  const Number out = after(narrow, "residual2", "Add");
  sketch.connect(attended, out);
  return out;
}

constexpr std::size_t kHeads = 8;
constexpr std::size_t kAttention = 6 * kHeads + 4;
constexpr std::size_t kFeedForward = 5;
constexpr std::size_t kEncoderDecoderPair = 3 * kAttention + 2 * kFeedForward;

// Layers as first published for translation, normalised at the end, every head with ops of its own.
// The ops of all heads and layers share their roles.
class AttentionLayers {
 public:
  explicit AttentionLayers(Sketch& sketch) : sketch_(sketch) {}

  // Heads that ask from `input` about `source`, joined and added to `input`.
  Number add_attention(const std::string& name, Number input, Number source) {
    const auto after = [&](Number before, std::string_view part, std::string_view type, int role) {
      return sketch_.add_after(before, fmt::format("{}.{}", name, part), type, role);
    };
    std::vector<Number> contexts;
    for (std::size_t head = 0; head < kHeads; ++head) {
      const auto of_head = [&](std::string_view part) {
        return fmt::format("head{}.{}", head, part);
      };
      const Number query = after(input, of_head("query"), "MatMul", 0);
      const Number key = after(source, of_head("key"), "MatMul", 1);
      const Number value = after(source, of_head("value"), "MatMul", 2);
      const Number scores = after(query, of_head("scores"), "MatMul", 3);
      sketch_.connect(key, scores);
      sketch_.leave_weights_out(scores);
      const Number weights = after(scores, of_head("softmax"), "Softmax", 4);
      contexts.push_back(after(weights, of_head("context"), "MatMul", 5));
      sketch_.connect(value, contexts.back());
      sketch_.leave_weights_out(contexts.back());
    }
    const Number joined = after(contexts.front(), "concat", "Concat", 6);
    for (std::size_t head = 1; head < kHeads; ++head) sketch_.connect(contexts[head], joined);
    const Number projected = after(joined, "project", "MatMul", 7);
    const Number added = after(projected, "residual", "Add", 8);
    sketch_.connect(input, added);
    return after(added, "norm", "LayerNormalization", 9);
  }

  Number add_feed_forward(const std::string& name, Number input) {
    const auto after = [&](Number before, std::string_view part, std::string_view type, int role) {
      return sketch_.add_after(before, fmt::format("{}.{}", name, part), type, role);
    };
    const Number wide = after(input, "up", "MatMul", 10);
    const Number active = after(wide, "relu", "Relu", 11);
    const Number added = after(after(active, "down", "MatMul", 12), "residual", "Add", 13);
    sketch_.connect(input, added);
    return after(added, "norm", "LayerNormalization", 14);
  }

 private:
  Sketch& sketch_;
};

// What is left of `ops`: one product after the other with an activation between.
void add_head(Sketch& sketch, Number last, std::size_t ops) {
  for (std::size_t i = 0; sketch.size() < ops; ++i) {
    const bool product = i % 2 == 1;
    last = sketch.add_after(last, fmt::format("head.{}{}", product ? "matmul" : "gelu", i / 2),
                            product ? "MatMul" : "Gelu");
  }
}

// A branch of `ops` ops, convolutions and activations in turn.
Number add_branch(Sketch& sketch, std::size_t module, std::size_t branch, std::size_t ops,
                  Number input) {
  Number last = input;
  for (std::size_t i = 0; i < ops; ++i) {
    const bool convolution = i % 2 == 0;
    last = sketch.add_after(
        last,
        fmt::format("module{}.branch{}.{}{}", module, branch, convolution ? "conv" : "relu", i / 2),
        convolution ? "Convolution" : "Relu");
  }
  return last;
}

}  // namespace

bool is_heavy(std::string_view type) {
  return type == "MatMul" || type == "Convolution";
}

std::pair<std::size_t, std::size_t> layered_edge_range(std::size_t ops, std::size_t layers) {
  const std::vector<std::size_t> begins = layer_begins(ops, layers);
  std::size_t most = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    most += begins[layer] * (begins[layer + 1] - begins[layer]);
  }
  return {ops - begins[1], most};
}

std::vector<SketchOp> layered_sketch(std::size_t ops, LayeredShape shape, RandomNumbers& random) {
  Sketch sketch(ops);
  while (sketch.size() < ops) sketch.add_mixed(random);
  if (shape.layers > 1) {
    LayeredEdges edges(sketch, layer_begins(ops, shape.layers), shape.edges);
    edges.join_layers(random);
    while (edges.count() < shape.edges) edges.add_one(random);
  }
  std::vector<SketchOp> made = sketch.take();
  for (SketchOp& op : made) std::sort(op.readers.begin(), op.readers.end());
  return made;
}

std::vector<SketchOp> chain_sketch(std::size_t ops, RandomNumbers& random) {
  Sketch sketch(ops);
  Number last = sketch.add_mixed(random);
  while (sketch.size() < ops) {
    const Number next = sketch.add_mixed(random);
    sketch.connect(last, next);
    last = next;
  }
  return sketch.take();
}

std::vector<SketchOp> series_parallel_sketch(std::size_t ops, RandomNumbers& random) {
  Sketch sketch(ops);
  series_parallel_part(sketch, ops, random);
  return sketch.take();
}

std::vector<SketchOp> transformer_sketch(std::size_t ops) {
  Sketch sketch(ops);
  Number last = sketch.add("embed", "Gather");
  for (std::size_t block = 0; sketch.size() + kTransformerBlock <= ops; ++block) {
    last = add_transformer_block(sketch, block, last);
  }
  add_head(sketch, last, ops);
  return sketch.take();
}

std::vector<SketchOp> encoder_decoder_sketch(std::size_t ops) {
  Sketch sketch(ops);
  AttentionLayers layers(sketch);
  const std::size_t pairs = ops < 2 ? 0 : (ops - 2) / kEncoderDecoderPair;
  Number encoded = sketch.add("source.embed", "Gather");
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::string name = fmt::format("encoder{}", i);
    encoded = layers.add_attention(name + ".attention", encoded, encoded);
    encoded = layers.add_feed_forward(name + ".forward", encoded);
  }
  if (pairs == 0) {
    add_head(sketch, encoded, ops);
    return sketch.take();
  }
  Number decoded = sketch.add("target.embed", "Gather");
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::string name = fmt::format("decoder{}", i);
    decoded = layers.add_attention(name + ".attention", decoded, decoded);
    decoded = layers.add_attention(name + ".cross", decoded, encoded);
    decoded = layers.add_feed_forward(name + ".forward", decoded);
  }
  add_head(sketch, decoded, ops);
  return sketch.take();
}

std::vector<SketchOp> inception_sketch(std::size_t ops, RandomNumbers& random) {
  Sketch sketch(ops);
  Number last = sketch.add("stem", "Convolution");
  for (std::size_t module = 0; sketch.size() < ops; ++module) {
    const std::size_t left = ops - sketch.size();
    std::vector<std::size_t> lengths;  // one is the pooling branch: a pool before its convolution
    for (std::size_t branch = random.between(3, 4); branch > 0; --branch) {
      lengths.push_back(2 * random.between(1, 3));
    }
    std::size_t need = 2;  // pool and concat
    for (const std::size_t length : lengths) need += length;
    if (need > left) {
      add_branch(sketch, module, 0, left, last);
      break;
    }
    const Number input = last;
    std::vector<Number> ends;
    for (std::size_t branch = 0; branch < lengths.size(); ++branch) {
      const Number entry =
          branch == 0 ? sketch.add_after(input, fmt::format("module{}.pool", module), "MaxPool")
                      : input;
      ends.push_back(add_branch(sketch, module, branch, lengths[branch], entry));
    }
    last = sketch.add(fmt::format("module{}.concat", module), "Concat");
    for (const Number end : ends) sketch.connect(end, last);
  }
  return sketch.take();
}

}  // namespace placewright
