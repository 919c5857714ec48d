// The shape of a generated graph: ops with a name and a type, and who reads whom. Costs come later
// (generate.cpp). Ops are numbered in a topological order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planners/random_numbers.h"

namespace placewright {

struct SketchOp {
  std::string name;
  std::string_view type;
  // Ops of one role cost the same; -1: the op has costs of its own.
  int role = -1;
  bool has_weights = true;  // where the type has any
  std::vector<std::uint32_t> readers = {};
};

struct LayeredShape {
  std::size_t layers = 0;
  std::size_t edges = 0;
};

// Each makes exactly `ops` ops, which is at least 1.
std::vector<SketchOp> layered_sketch(std::size_t ops, LayeredShape shape, RandomNumbers& random);
std::vector<SketchOp> chain_sketch(std::size_t ops, RandomNumbers& random);
std::vector<SketchOp> series_parallel_sketch(std::size_t ops, RandomNumbers& random);
std::vector<SketchOp> transformer_sketch(std::size_t ops);
std::vector<SketchOp> encoder_decoder_sketch(std::size_t ops);
std::vector<SketchOp> inception_sketch(std::size_t ops, RandomNumbers& random);

// The numbers of edges that a layered graph of this size can have: least, most.
std::pair<std::size_t, std::size_t> layered_edge_range(std::size_t ops, std::size_t layers);

// Whether ops of the type take long and have weights.
bool is_heavy(std::string_view type);

}  // namespace placewright
