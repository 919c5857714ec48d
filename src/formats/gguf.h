// Models of llama.cpp: the header of a GGUF file, what its layers weigh, and shorter copies of it.
//
// A GGUF file is a header, the keys, a record for each tensor, and the data. Numbers are little
// endian. Only the header is read: the size of a tensor is the distance to the next one, so every
// type of number is known, those of tomorrow too.
//
// Reference: ggml-org/ggml, its page on the GGUF format.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/layer_split.h"

namespace placewright {

struct GgufTensor {
  std::string name;
  std::string record;  // as in the file, between the name and the offset
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  // Of "blk.12.ffn_up.weight" 12.
  [[nodiscard]] std::optional<std::size_t> layer() const;
  // Weights of which a token reads only those of some experts.
  [[nodiscard]] bool is_expert() const;
};

struct GgufKey {
  std::string name;
  std::string record;  // as in the file, type and value
  std::optional<double> number;
  std::optional<std::string> text;
  std::vector<double> numbers;     // of an array of numbers
  std::uint64_t length = 0;        // of an array
  std::size_t first_element = 0;   // of an array, in `record`
  std::uint32_t element_type = 0;  // of an array
};

struct GgufFile {
  std::string path;
  std::vector<GgufKey> keys;
  std::vector<GgufTensor> tensors;
  std::uint64_t data = 0;  // where the tensors begin
  std::uint64_t alignment = 32;

  [[nodiscard]] std::string architecture() const;
  // Of "ARCHITECTURE.name".
  [[nodiscard]] const GgufKey* of_architecture(const std::string& name) const;
  [[nodiscard]] std::size_t layers() const;
};

// Throws InputError for a file that is damaged, of an older version, or one of several parts.
GgufFile read_gguf(const std::string& path);
// Of the begin of a file of so many bytes.
GgufFile parse_gguf(std::string_view begin, const std::string& path, std::uint64_t size);

// What the layers weigh with a context of so many tokens of 16-bit keys and values. The work
// of a layer is in units of the mean of the first `measured` layers: bytes that a token reads.
LayeredModel layered_model(const GgufFile& file, std::size_t context, std::size_t measured);

// Writes the model with its first layers only. Throws OutputError or InputError.
void write_first_layers(const GgufFile& file, std::size_t layers, const std::string& path);

}  // namespace placewright
