// Models of llama.cpp, a few kilobytes large, for tests of what reads them.

#pragma once

#include <cstdint>
#include <string>

namespace placewright::testing {

struct SmallGguf {
  std::uint32_t layers = 4;
  std::uint32_t width = 64;
  std::uint32_t experts = 0;
  std::uint32_t parts = 1;
  bool heads_by_layer = false;  // "attention.head_count_kv" as an array
  bool own_head = true;         // else the embedding is read once more
};

// The bytes of the file. Layer i has tensors of width * width numbers of 32 bits: one for the
// attention, and one or one for each expert for the rest. All of its bytes are i + 1; those of
// the embedding and the head are 100 and 101.
std::string small_gguf(const SmallGguf& shape);

}  // namespace placewright::testing
