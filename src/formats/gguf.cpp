#include "formats/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "formats/printable.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies in the file");

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kBlock = "blk.";
constexpr std::uint32_t kText = 8;
constexpr std::uint32_t kArray = 9;
// Headers are some megabytes long (the vocabulary); a file that claims more is damaged.
constexpr std::size_t kLongestHeader = std::size_t{1} << 28;
constexpr std::uint64_t kMostLayers = 100'000;
constexpr std::uint32_t kMostDimensions = 8;

// Bytes of a number by its type: u8 i8 u16 i16 u32 i32 f32 bool text array u64 i64 f64.
constexpr std::array<std::size_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class Number>
double as(const char* bytes) {
  Number number{};
  std::memcpy(&number, bytes, sizeof number);
  return static_cast<double>(number);
}

double number_at(std::uint32_t type, const char* bytes) {
  constexpr std::array<double (*)(const char*), 13> kReaders = {
      as<std::uint8_t>,  as<std::int8_t>,  as<std::uint16_t>, as<std::int16_t>, as<std::uint32_t>,
      as<std::int32_t>,  as<float>,        as<std::uint8_t>,  nullptr,          nullptr,
      as<std::uint64_t>, as<std::int64_t>, as<double>};
  return kReaders[type](bytes);
}

template <class Number>
void append_raw(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(input_name(path_), fmt::format("byte {}", at_), message);
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the file ends inside its header");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class Number>
  Number number() {
    Number number{};
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  std::string_view text() { return take(number<std::uint64_t>()); }
  [[nodiscard]] std::string_view since(std::size_t begin) const {
    return bytes_.substr(begin, at_ - begin);
  }

 private:
  const std::string& path_;
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::size_t size_of(HeaderReader& reader, std::uint32_t type) {
  if (type >= kSizes.size()) reader.fail(fmt::format("a key has the unknown type {}", type));
  return kSizes[type];
}

void read_array(HeaderReader& reader, GgufKey& key, std::size_t begin) {
  key.element_type = reader.number<std::uint32_t>();
  key.length = reader.number<std::uint64_t>();
  key.first_element = reader.at() - begin;
  const std::size_t size = size_of(reader, key.element_type);
  if (size == 0) {
    if (key.element_type != kText) reader.fail("a key is an array of arrays");
    for (std::uint64_t i = 0; i < key.length; ++i) (void)reader.text();
    return;
  }
  if (key.length > kLongestHeader / size) reader.fail("the file ends inside its header");
  const std::string_view elements = reader.take(key.length * size);
  if (key.length > kMostLayers) return;
  for (std::uint64_t i = 0; i < key.length; ++i) {
    key.numbers.push_back(number_at(key.element_type, elements.data() + i * size));
  }
}

GgufKey read_key(HeaderReader& reader) {
  GgufKey key;
  key.name = reader.text();
  const std::size_t begin = reader.at();
  const auto type = reader.number<std::uint32_t>();
  const std::size_t size = size_of(reader, type);
  if (type == kArray) {
    read_array(reader, key, begin);
  } else if (type == kText) {
    key.text = reader.text();
  } else {
    key.number = number_at(type, reader.take(size).data());
  }
  key.record = reader.since(begin);
  return key;
}

GgufTensor read_tensor(HeaderReader& reader) {
  GgufTensor tensor;
  tensor.name = reader.text();
  const std::size_t begin = reader.at();
  const auto dimensions = reader.number<std::uint32_t>();
  if (dimensions > kMostDimensions) {
    reader.fail(fmt::format("tensor '{}' has {} dimensions", printable(tensor.name), dimensions));
  }
  (void)reader.take(std::uint64_t{8} * dimensions + 4);
  tensor.record = reader.since(begin);
  tensor.offset = reader.number<std::uint64_t>();
  return tensor;
}

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// A tensor ends where the next one begins, the last one with the file.
void measure_tensors(GgufFile& file, std::uint64_t size) {
  std::vector<GgufTensor*> order;
  for (GgufTensor& tensor : file.tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, &GgufTensor::offset);
  const std::uint64_t data = size > file.data ? size - file.data : 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t end = i + 1 < order.size() ? order[i + 1]->offset : data;
    if (end < order[i]->offset || end > data) {
      throw InputError(input_name(file.path), printable(order[i]->name),
                       "the tensor lies behind the end of the file");
    }
    order[i]->bytes = end - order[i]->offset;
  }
}

// The type, and how many numbers: at the end of the record, and before it.
std::uint32_t type_of(const GgufTensor& tensor) {
  std::uint32_t type = 0;
  std::memcpy(&type, tensor.record.data() + tensor.record.size() - sizeof type, sizeof type);
  return type;
}
double numbers_in(const GgufTensor& tensor) {
  double numbers = 1;
  for (std::size_t at = 4; at + 8 < tensor.record.size(); at += 8) {
    numbers *= as<std::uint64_t>(tensor.record.data() + at);
  }
  return numbers;
}

// Where the file ends too early, its last tensor is shorter than others of its type.
void check_last_tensor(const GgufFile& file) {
  if (file.tensors.empty()) return;
  const GgufTensor& last = *std::ranges::max_element(file.tensors, {}, &GgufTensor::offset);
  for (const GgufTensor& other : file.tensors) {
    if (&other == &last || type_of(other) != type_of(last) || numbers_in(other) == 0) continue;
    // Up to the alignment of a tensor is padding.
    const double padded = static_cast<double>(file.alignment);
    const double least = (static_cast<double>(other.bytes) - padded) / numbers_in(other);
    if (static_cast<double>(last.bytes) + padded < least * numbers_in(last)) {
      throw InputError(input_name(file.path), printable(last.name),
                       "the file ends inside this tensor");
    }
  }
}

const GgufKey* key_named(const GgufFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.keys, name, &GgufKey::name);
  return found == file.keys.end() ? nullptr : &*found;
}

void check_whole(const GgufFile& file) {
  const GgufKey* parts = key_named(file, "split.count");
  if (parts != nullptr && parts->number.value_or(0) > 1) {
    throw InputError(input_name(file.path), "",
                     "the model is in several parts: join them with 'llama-gguf-split --merge'");
  }
  if (file.layers() == 0 || file.layers() > kMostLayers) {
    throw InputError(
        input_name(file.path), "",
        fmt::format("'{}.block_count' states no number of layers", printable(file.architecture())));
  }
  for (const GgufTensor& tensor : file.tensors) {
    if (tensor.layer().value_or(0) >= file.layers()) {
      throw InputError(input_name(file.path), printable(tensor.name),
                       fmt::format("the model has only {} layers", file.layers()));
    }
  }
}

std::string begin_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(input_name(path), "", "cannot be opened");
  std::string bytes;
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::uintmax_t size = std::filesystem::file_size(path);
  bytes.resize(static_cast<std::size_t>(std::min<std::uintmax_t>(size, kLongestHeader)));
  std::size_t read = 0;
  while (read < bytes.size() && in) {
    in.read(bytes.data() + read,
            static_cast<std::streamsize>(std::min(kPiece, bytes.size() - read)));
    read += static_cast<std::size_t>(in.gcount());
  }
  bytes.resize(read);
  return bytes;
}

// A value for each layer: an array has one, a number counts for all.
double of_layer(const GgufKey* key, std::size_t layer, double otherwise) {
  if (key == nullptr) return otherwise;
  if (layer < key->numbers.size()) return key->numbers[layer];
  return key->number.value_or(otherwise);
}

}  // namespace

std::optional<std::size_t> GgufTensor::layer() const {
  if (!name.starts_with(kBlock)) return std::nullopt;
  std::size_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kBlock.size(), end, number);
  if (error != std::errc{} || stop == end || *stop != '.') return std::nullopt;
  return number;
}

bool GgufTensor::is_expert() const {
  return layer() && name.find("_exps.") != std::string::npos;
}

std::string GgufFile::architecture() const {
  const GgufKey* key = key_named(*this, "general.architecture");
  return key != nullptr && key->text ? *key->text : "";
}

const GgufKey* GgufFile::of_architecture(const std::string& name) const {
  return key_named(*this, architecture() + "." + name);
}

std::size_t GgufFile::layers() const {
  const GgufKey* key = of_architecture("block_count");
  const double number = key == nullptr ? 0 : key->number.value_or(0);
  return number >= 1 && number <= kMostLayers ? static_cast<std::size_t>(number) : 0;
}

GgufFile read_gguf(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) {
    throw InputError(input_name(path), "", "is no file with a model of llama.cpp");
  }
  return parse_gguf(begin_of(path), path, std::filesystem::file_size(path));
}

GgufFile parse_gguf(std::string_view bytes, const std::string& path, std::uint64_t size) {
  HeaderReader reader(path, bytes);
  if (!bytes.starts_with(kMagic)) reader.fail("is no GGUF file: it does not begin with 'GGUF'");
  (void)reader.take(kMagic.size());
  const auto version = reader.number<std::uint32_t>();
  if (version != 2 && version != 3) {
    reader.fail(fmt::format("GGUF version {}; 2 and 3 are known", version));
  }
  const auto tensors = reader.number<std::uint64_t>();
  const auto keys = reader.number<std::uint64_t>();
  GgufFile file{.path = path, .keys = {}, .tensors = {}};
  for (std::uint64_t i = 0; i < keys; ++i) file.keys.push_back(read_key(reader));
  for (std::uint64_t i = 0; i < tensors; ++i) file.tensors.push_back(read_tensor(reader));
  if (const GgufKey* key = key_named(file, "general.alignment"); key != nullptr) {
    constexpr double kMostAlignment = 1 << 20;
    const double alignment = key->number.value_or(0);
    if (!(alignment >= 1) || alignment > kMostAlignment) reader.fail("the alignment is no size");
    file.alignment = static_cast<std::uint64_t>(alignment);
  }
  file.data = aligned(reader.at(), file.alignment);
  measure_tensors(file, size);
  check_last_tensor(file);
  check_whole(file);
  return file;
}

LayeredModel layered_model(const GgufFile& file, std::size_t context, std::size_t measured) {
  LayeredModel model;
  model.name = file.architecture();
  model.layers.resize(file.layers());
  double embedding = 0;
  for (const GgufTensor& tensor : file.tensors) {
    const auto bytes = static_cast<double>(tensor.bytes);
    const auto number = tensor.layer();
    if (number) {
      model.layers[*number].weights += bytes;
      if (tensor.is_expert()) model.layers[*number].experts += bytes;
    } else if (tensor.name.starts_with("output")) {
      model.head += bytes;
    } else if (tensor.name == "token_embd.weight") {
      embedding = bytes;
    }
  }
  // Without a head of its own the model reads the embedding once more, where the head is.
  const auto is_head = [](const GgufTensor& tensor) { return tensor.name == "output.weight"; };
  if (std::ranges::none_of(file.tensors, is_head)) model.head += embedding;
  const double heads = of_layer(file.of_architecture("attention.head_count"), 0, 1);
  const double width =
      of_layer(file.of_architecture("embedding_length"), 0, 0) / std::max(1.0, heads);
  const double used = of_layer(file.of_architecture("expert_used_count"), 0, 1);
  const double experts = std::max(1.0, of_layer(file.of_architecture("expert_count"), 0, 1));
  double first = 0;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    ModelLayer& layer = model.layers[l];
    const double key = of_layer(file.of_architecture("attention.key_length"), l, width);
    const double value = of_layer(file.of_architecture("attention.value_length"), l, width);
    constexpr double kBytes = 2;
    layer.cache = kBytes * static_cast<double>(context) * (key + value) *
                  of_layer(file.of_architecture("attention.head_count_kv"), l, heads);
    layer.work = layer.weights - layer.experts + layer.experts * used / experts;
    if (l < measured)
      first += layer.work / static_cast<double>(std::min(measured, model.layers.size()));
  }
  for (ModelLayer& layer : model.layers) layer.work = first > 0 ? layer.work / first : 1;
  return model;
}

namespace {

// The number of layers, and arrays with a value for each layer, become shorter.
std::string shortened(const GgufFile& file, const GgufKey& key, std::size_t layers) {
  if (&key == file.of_architecture("block_count")) {
    std::string record;
    append_raw(record, std::uint32_t{4});
    append_raw(record, static_cast<std::uint32_t>(layers));
    return record;
  }
  const bool by_layer = key.length == file.layers() && key.numbers.size() == key.length &&
                        key.name.starts_with(file.architecture() + ".");
  if (!by_layer) return key.record;
  std::string record;
  append_raw(record, kArray);
  append_raw(record, key.element_type);
  append_raw(record, static_cast<std::uint64_t>(layers));
  return record + key.record.substr(key.first_element, layers * kSizes[key.element_type]);
}

void append_text(std::string& text, const std::string& value) {
  append_raw(text, static_cast<std::uint64_t>(value.size()));
  text += value;
}

}  // namespace

void write_first_layers(const GgufFile& file, std::size_t layers, const std::string& path) {
  std::vector<const GgufTensor*> kept;
  for (const GgufTensor& tensor : file.tensors) {
    if (tensor.layer().value_or(0) < layers) kept.push_back(&tensor);
  }
  std::string header(kMagic);
  append_raw(header, std::uint32_t{3});
  append_raw(header, static_cast<std::uint64_t>(kept.size()));
  append_raw(header, static_cast<std::uint64_t>(file.keys.size()));
  for (const GgufKey& key : file.keys) {
    append_text(header, key.name);
    header += shortened(file, key, layers);
  }
  std::uint64_t offset = 0;
  for (const GgufTensor* tensor : kept) {
    append_text(header, tensor->name);
    header += tensor->record;
    append_raw(header, offset);
    offset += aligned(tensor->bytes, file.alignment);
  }
  header.resize(aligned(header.size(), file.alignment));
  std::ifstream in(file.path, std::ios::binary);
  std::ofstream out(path, std::ios::binary);
  out << header;
  std::string bytes;
  for (const GgufTensor* tensor : kept) {
    bytes.resize(tensor->bytes);
    in.seekg(static_cast<std::streamoff>(file.data + tensor->offset));
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!in) throw InputError(input_name(file.path), printable(tensor->name), "cannot be read");
    bytes.resize(aligned(bytes.size(), file.alignment));
    out << bytes;
  }
  out.flush();
  if (!out) throw OutputError(path, "cannot be written");
}

}  // namespace placewright
