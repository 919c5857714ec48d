#include "zoo/zoo.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <lzma.h>

#include "formats/input_error.h"
#include "formats/json.h"
#include "formats/text_file.h"
#include "zoo/zoo_data.h"

namespace placewright {
namespace {

static_assert(std::endian::native == std::endian::little, "the files hold little-endian values");

std::size_t count_in(JsonValue value) {
  return static_cast<std::size_t>(value.natural());
}

ZooTensor tensor_in(JsonValue value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ZooTensor tensor{std::string{value.at("name").text()}, std::string{value.at("type").text()}, {}};
  for (const JsonValue dimension : value.at("shape").elements()) {
    tensor.shape.push_back(dimension.integer(1, kMost));
  }
  if (const auto least = value.find("least")) tensor.least = least->integer(0, kMost);
  if (const auto most = value.find("most")) tensor.most = most->integer(0, kMost);
  return tensor;
}

ZooEntry entry_in(JsonValue value) {
  ZooEntry entry;
  entry.name = value.at("name").text();
  entry.title = value.at("title").text();
  entry.ops = count_in(value.at("ops"));
  entry.parameters = count_in(value.at("parameters"));
  entry.bytes = count_in(value.at("bytes"));
  for (const JsonValue input : value.at("inputs").elements()) {
    entry.inputs.push_back(tensor_in(input));
  }
  for (const JsonValue output : value.at("outputs").elements()) {
    entry.outputs.push_back(tensor_in(output));
  }
  entry.source = value.at("source").text();
  entry.licence = value.at("licence").text();
  return entry;
}

std::vector<ZooEntry> read_index() {
  const JsonDocument document(zoo_index(), "zoo/index.json");
  std::vector<ZooEntry> entries;
  for (const JsonValue value : document.root().elements()) entries.push_back(entry_in(value));
  return entries;
}

std::string_view packed_architecture(std::string_view name) {
  for (const PackedArchitecture& architecture : packed_architectures()) {
    if (architecture.name == name) return architecture.packed;
  }
  throw std::invalid_argument(fmt::format("no model of the zoo is called '{}'", name));
}

std::string unpacked(std::string_view name, std::string_view packed) {
  std::string text(8 * packed.size(), '\0');
  for (;;) {
    std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
    std::size_t read = 0;
    std::size_t written = 0;
    const lzma_ret answer = lzma_stream_buffer_decode(
        &memory, 0, nullptr, reinterpret_cast<const std::uint8_t*>(packed.data()), &read,
        packed.size(), reinterpret_cast<std::uint8_t*>(text.data()), &written, text.size());
    if (answer == LZMA_BUF_ERROR && text.size() < kLargestFile) {
      text.resize(2 * text.size());
      continue;
    }
    if (answer != LZMA_OK) {
      throw std::runtime_error(fmt::format("the zoo's data of '{}' is damaged", name));
    }
    text.resize(written);
    return text;
  }
}

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection whose output bits
// each depend on all input bits.
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

// The weights of one model: the value for each place in its file.
class SeededValues {
 public:
  SeededValues(std::string_view name, std::uint64_t seed)
      : key_(mixed(mixed(seed) ^ hash_of(name))) {}

  // `place` counts floats from the begin of the file. Only integers are added, and one
  // multiplication is rounded: no compiler can make another result of it.
  void fill(float* values, std::size_t count, std::size_t place, double mean,
            double deviation) const {
    const double unit = deviation / kDeviation;
    const std::int64_t shift = std::llround(mean / unit) - kMean;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(static_cast<double>(sum_at(place + i) + shift) * unit);
    }
  }

 private:
  // Of the sum of four independent uniform values in 0 .. 65535.
  static constexpr std::int64_t kMean = 131070;
  static constexpr double kDeviation = 37837.22722566;

  [[nodiscard]] std::int64_t sum_at(std::size_t place) const {
    const std::uint64_t bits = mixed(key_ + (place + 1) * 0x9e3779b97f4a7c15U);
    return static_cast<std::int64_t>((bits & 0xffffU) + (bits >> 16U & 0xffffU) +
                                     (bits >> 32U & 0xffffU) + (bits >> 48U));
  }

  std::uint64_t key_;
};

char hex_digit(char letter) {
  return static_cast<char>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

void copy_hex(std::string_view digits, char* bytes) {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes[i / 2] = static_cast<char>(hex_digit(digits[i]) << 4 | hex_digit(digits[i + 1]));
  }
}

std::size_t place_of(JsonValue constant, std::size_t length, std::size_t size) {
  const std::size_t offset = count_in(constant.at("offset"));
  if (length > size || offset > size - length || offset % sizeof(float) != 0) {
    constant.fail("lies outside the file of weights");
  }
  return offset;
}

std::string grown_weights(JsonValue architecture, const SeededValues& values) {
  const std::size_t size = count_in(architecture.at("size"));
  std::string weights(size, '\0');
  std::vector<float> grown;
  for (const JsonValue constant : architecture.at("constants").elements()) {
    if (const auto bytes = constant.find("bytes")) {
      const std::string_view digits = bytes->text();
      copy_hex(digits, weights.data() + place_of(constant, digits.size() / 2, size));
      continue;
    }
    grown.resize(count_in(constant.at("count")));
    const std::size_t length = grown.size() * sizeof(float);
    const std::size_t offset = place_of(constant, length, size);
    values.fill(grown.data(), grown.size(), offset / sizeof(float), constant.at("mean").number(),
                constant.at("deviation").number());
    std::memcpy(weights.data() + offset, grown.data(), length);
  }
  return weights;
}

}  // namespace

const std::vector<ZooEntry>& zoo_entries() {
  static const std::vector<ZooEntry> entries = read_index();
  return entries;
}

ZooModel zoo_model(std::string_view name, std::uint64_t seed) {
  const std::string text = unpacked(name, packed_architecture(name));
  const JsonDocument document(text, fmt::format("zoo/architectures/{}.json", name));
  const JsonValue architecture = document.root();
  return {std::string{architecture.at("xml").text()},
          grown_weights(architecture, SeededValues(name, seed))};
}

ZooFiles make_zoo_model(std::string_view name, const std::string& folder, std::uint64_t seed) {
  const ZooModel model = zoo_model(name, seed);
  const std::filesystem::path path(folder);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw OutputError(folder, fmt::format("cannot be made: {}", error.message()));

  const ZooFiles files{(path / fmt::format("{}.xml", name)).string(),
                       (path / fmt::format("{}.bin", name)).string()};
  // The XML last: a model whose XML is there has its weights.
  write_whole(files.weights, model.weights);
  write_whole(files.xml, model.xml);
  return files;
}

}  // namespace placewright
