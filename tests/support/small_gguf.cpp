#include "support/small_gguf.h"

#include <string_view>
#include <vector>

namespace placewright::testing {
namespace {

template <class Number>
void append_raw(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& text, std::string_view value) {
  append_raw(text, std::uint64_t{value.size()});
  text += value;
}

void append_number(std::string& text, std::string_view key, std::uint32_t value) {
  append_text(text, key);
  append_raw(text, std::uint32_t{4});
  append_raw(text, value);
}

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> dimensions;
  char fill;
};

std::uint64_t bytes_of(const Tensor& tensor) {
  std::uint64_t count = 4;
  for (const std::uint64_t dimension : tensor.dimensions) count *= dimension;
  return count;
}

std::vector<Tensor> tensors_of(const SmallGguf& shape) {
  const std::uint64_t width = shape.width;
  std::vector<Tensor> tensors = {{"token_embd.weight", {width, 10}, 100}};
  if (shape.own_head) tensors.push_back({"output.weight", {width, 10}, 101});
  for (std::uint32_t l = 0; l < shape.layers; ++l) {
    const std::string block = "blk." + std::to_string(l) + ".";
    const char fill = static_cast<char>(l + 1);
    tensors.push_back({block + "attn_q.weight", {width, width}, fill});
    if (shape.experts == 0)
      tensors.push_back({block + "ffn_up.weight", {width, width}, fill});
    else
      tensors.push_back({block + "ffn_up_exps.weight", {width, width, shape.experts}, fill});
  }
  return tensors;
}

}  // namespace

std::string small_gguf(const SmallGguf& shape) {
  std::string keys;
  std::uint64_t count = 6;
  append_text(keys, "general.architecture");
  append_raw(keys, std::uint32_t{8});
  append_text(keys, "llama");
  append_number(keys, "llama.block_count", shape.layers);
  append_number(keys, "llama.embedding_length", shape.width);
  append_number(keys, "llama.attention.head_count", 4);
  append_number(keys, "split.count", shape.parts);
  append_text(keys, "llama.attention.head_count_kv");
  if (shape.heads_by_layer) {
    append_raw(keys, std::uint32_t{9});
    append_raw(keys, std::uint32_t{4});
    append_raw(keys, std::uint64_t{shape.layers});
    for (std::uint32_t l = 0; l < shape.layers; ++l) append_raw(keys, l + 1);
  } else {
    append_raw(keys, std::uint32_t{4});
    append_raw(keys, std::uint32_t{2});
  }
  if (shape.experts > 0) {
    append_number(keys, "llama.expert_count", shape.experts);
    append_number(keys, "llama.expert_used_count", 2);
    count += 2;
  }
  const std::vector<Tensor> tensors = tensors_of(shape);
  std::string file = "GGUF";
  append_raw(file, std::uint32_t{3});
  append_raw(file, std::uint64_t{tensors.size()});
  append_raw(file, count);
  file += keys;
  std::string data;
  for (const Tensor& tensor : tensors) {
    append_text(file, tensor.name);
    append_raw(file, static_cast<std::uint32_t>(tensor.dimensions.size()));
    for (const std::uint64_t dimension : tensor.dimensions) append_raw(file, dimension);
    append_raw(file, std::uint32_t{0});
    append_raw(file, std::uint64_t{data.size()});
    data.append(bytes_of(tensor), tensor.fill);
    data.resize((data.size() + 31) / 32 * 32);
  }
  file.resize((file.size() + 31) / 32 * 32);
  return file + data;
}

}  // namespace placewright::testing
