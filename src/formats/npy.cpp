// .npy and .npz, as https://numpy.org/neps/nep-0001-npy-format.html and PKWARE's APPNOTE describe
// them.

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include "formats/array_files.h"
#include "formats/input_error.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

struct ElementName {
  std::string_view ours;
  std::string_view numpy;  // without the byte order; empty if NumPy has no such type
  std::size_t bytes;
};

constexpr std::array kElements = {
    ElementName{"f16", "f2", 2}, ElementName{"f32", "f4", 4}, ElementName{"f64", "f8", 8},
    ElementName{"i8", "i1", 1},  ElementName{"i16", "i2", 2}, ElementName{"i32", "i4", 4},
    ElementName{"i64", "i8", 8}, ElementName{"u8", "u1", 1},  ElementName{"u16", "u2", 2},
    ElementName{"u32", "u4", 4}, ElementName{"u64", "u8", 8}, ElementName{"boolean", "b1", 1},
    ElementName{"bf16", "", 2},
};

constexpr std::string_view kMagic("\x93NUMPY", 6);

// Little-endian, as both formats have it.
std::size_t number_at(std::string_view bytes, std::size_t place, std::size_t size) {
  std::size_t number = 0;
  for (std::size_t i = size; i-- > 0;) {
    number = number << 8U | static_cast<unsigned char>(bytes[place + i]);
  }
  return number;
}

// What follows 'key': in the header, which is a dictionary as Python writes it.
std::string_view entry_of(std::string_view header, std::string_view key,
                          const std::string& origin) {
  const std::size_t found = header.find(fmt::format("'{}':", key));
  if (found == std::string_view::npos) {
    throw InputError(origin, "", fmt::format("is not a .npy file: its header has no '{}'", key));
  }
  std::string_view rest = header.substr(found + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<std::size_t> shape_in(std::string_view text, const std::string& origin) {
  const std::size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) {
    throw InputError(origin, "", "is not a .npy file: its shape cannot be read");
  }
  std::vector<std::size_t> shape;
  for (std::string_view rest = text.substr(1, end - 1); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (item.empty()) continue;
    std::size_t size = 0;
    const auto [last, error] = std::from_chars(item.data(), item.data() + item.size(), size);
    if (error != std::errc{} || last != item.data() + item.size()) {
      throw InputError(origin, "", "is not a .npy file: its shape cannot be read");
    }
    shape.push_back(size);
  }
  return shape;
}

const ElementName& element_in(std::string_view text, const std::string& origin) {
  const std::size_t end = text.find('\'', 1);
  const std::string_view type =
      text.starts_with('\'') && end != std::string_view::npos ? text.substr(1, end - 1) : "";
  if (type.size() == 3 && type[0] != '>') {
    for (const ElementName& element : kElements) {
      if (element.numpy == type.substr(1)) return element;
    }
  }
  throw InputError(origin, "",
                   fmt::format("has elements of the type {}, which cannot be read: convert it "
                               "with numpy's astype",
                               type.empty() ? "'structured'" : std::string{type}));
}

const ElementName* element_called(std::string_view name) {
  const auto* found = std::ranges::find(kElements, name, &ElementName::ours);
  return found == kElements.end() ? nullptr : found;
}

// One file in a ZIP archive.
struct Member {
  std::string name;
  std::size_t method = 0;
  std::size_t checksum = 0;
  std::size_t packed = 0;
  std::size_t size = 0;
  std::size_t header = 0;  // where its local header begins
};

[[noreturn]] void fail_as_archive(const std::string& origin) {
  throw InputError(origin, "", "is not a .npz file: the archive is damaged");
}

std::vector<Member> members_of(std::string_view bytes, const std::string& origin) {
  constexpr std::string_view kEnd("PK\x05\x06", 4);
  constexpr std::string_view kEntry("PK\x01\x02", 4);
  const std::size_t end = bytes.rfind(kEnd);
  if (end == std::string_view::npos || bytes.size() - end < 22) fail_as_archive(origin);
  const std::size_t count = number_at(bytes, end + 10, 2);
  std::size_t place = number_at(bytes, end + 16, 4);
  std::vector<Member> members;
  for (std::size_t i = 0; i < count; ++i) {
    if (place > bytes.size() || bytes.size() - place < 46 || bytes.substr(place, 4) != kEntry) {
      fail_as_archive(origin);
    }
    const std::size_t name = number_at(bytes, place + 28, 2);
    if (bytes.size() - place - 46 < name) fail_as_archive(origin);
    members.push_back({.name = std::string{bytes.substr(place + 46, name)},
                       .method = number_at(bytes, place + 10, 2),
                       .checksum = number_at(bytes, place + 16, 4),
                       .packed = number_at(bytes, place + 20, 4),
                       .size = number_at(bytes, place + 24, 4),
                       .header = number_at(bytes, place + 42, 4)});
    place += 46 + name + number_at(bytes, place + 30, 2) + number_at(bytes, place + 32, 2);
  }
  return members;
}

// Where the bytes of a member lie. Throws InputError.
std::string_view packed_bytes(std::string_view bytes, const Member& member,
                              const std::string& origin) {
  if (member.header > bytes.size() || bytes.size() - member.header < 30) fail_as_archive(origin);
  const std::size_t data = member.header + 30 + number_at(bytes, member.header + 26, 2) +
                           number_at(bytes, member.header + 28, 2);
  if (data > bytes.size() || bytes.size() - data < member.packed) fail_as_archive(origin);
  return bytes.substr(data, member.packed);
}

// A small file cannot ask for much memory: no two members share bytes of the archive, and all of
// them together are no larger than a file may be.
void require_modest(std::string_view bytes, const std::vector<Member>& members,
                    const std::string& origin) {
  std::vector<std::pair<std::size_t, std::size_t>> stretches;
  std::size_t total = 0;
  for (const Member& member : members) {
    const std::string_view packed = packed_bytes(bytes, member, origin);
    stretches.emplace_back(member.header, packed.data() + packed.size() - bytes.data());
    total += member.size;  // of at most 65535 sizes below 2^32
  }
  std::ranges::sort(stretches);
  for (std::size_t i = 1; i < stretches.size(); ++i) {
    if (stretches[i].first < stretches[i - 1].second) {
      throw InputError(origin, "", "is not a .npz file: two members overlap");
    }
  }
  if (total > kLargestFile) {
    throw InputError(
        origin, "",
        fmt::format("unpacks to {} bytes, which is more than {}, the most that is read", total,
                    kLargestFile));
  }
}

// What deflate packed; nullopt if that is not `size` bytes.
std::optional<std::string> inflated(std::string_view packed, std::size_t size) {
  // Deflate makes less than this of a byte.
  constexpr std::size_t kMostOfAByte = 1040;
  if (size / kMostOfAByte > packed.size()) return std::nullopt;
  std::string text(size + 1, '\0');  // a byte more: too much is told from enough
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  const int answer = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (answer != Z_STREAM_END || stream.total_out != size || stream.avail_in != 0) {
    return std::nullopt;
  }
  text.resize(size);
  return text;
}

std::string unpacked(std::string_view bytes, const Member& member, const std::string& origin) {
  constexpr std::size_t kStored = 0;
  constexpr std::size_t kDeflated = 8;
  const std::string_view packed = packed_bytes(bytes, member, origin);
  std::optional<std::string> text;
  if (member.method == kStored && member.size == member.packed) text = std::string{packed};
  if (member.method == kDeflated) text = inflated(packed, member.size);
  if (!text ||
      crc32_z(0, reinterpret_cast<const Bytef*>(text->data()), text->size()) != member.checksum) {
    fail_as_archive(origin);
  }
  return *std::move(text);
}

}  // namespace

bool fits(const Array& array, std::size_t bytes) {
  const ElementName* element = element_called(array.element);
  if (element == nullptr) return false;
  if (std::ranges::find(array.shape, 0U) != array.shape.end()) return bytes == 0;
  std::size_t needed = element->bytes;
  for (const std::size_t size : array.shape) {
    if (size > bytes / needed) return false;
    needed *= size;
  }
  return needed == bytes;
}

Array parse_npy(std::string_view bytes, const std::string& origin) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) {
    throw InputError(origin, "", "is not a .npy file: it does not begin with \\x93NUMPY");
  }
  const std::size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  const std::size_t length = number_at(bytes, 8, length_bytes);
  const std::size_t begin = 8 + length_bytes + length;
  if (begin > bytes.size()) throw InputError(origin, "", "is not a .npy file: it ends too early");
  const std::string_view header = bytes.substr(8 + length_bytes, length);
  const ElementName& element = element_in(entry_of(header, "descr", origin), origin);
  if (!entry_of(header, "fortran_order", origin).starts_with("False")) {
    throw InputError(origin, "", "is stored by columns: write it with numpy.ascontiguousarray");
  }
  Array array{.element = std::string{element.ours},
              .shape = shape_in(entry_of(header, "shape", origin), origin),
              .bytes = {}};
  const std::string_view data = bytes.substr(begin);
  if (!fits(array, data.size())) {
    throw InputError(origin, "",
                     fmt::format("holds {} bytes of values, which is not the shape {}", data.size(),
                                 fmt::join(array.shape, "x")));
  }
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  array.bytes.assign(first, first + data.size());
  return array;
}

NamedArrays parse_npz(std::string_view bytes, const std::string& origin) {
  const std::vector<Member> members = members_of(bytes, origin);
  require_modest(bytes, members, origin);
  NamedArrays arrays;
  for (const Member& member : members) {
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] =
        parse_npy(unpacked(bytes, member, origin), fmt::format("{} ({})", origin, member.name));
  }
  return arrays;
}

NamedArrays read_arrays(const std::string& path) {
  return parse_npz(read_whole(path), input_name(path));
}

std::string npy_bytes(const Array& array) {
  const ElementName* element = element_called(array.element);
  if (element == nullptr || element->numpy.empty()) {
    throw std::invalid_argument(fmt::format("NumPy has no elements of the type {}", array.element));
  }
  std::string shape = fmt::format("{}", fmt::join(array.shape, ", "));
  if (array.shape.size() == 1) shape += ',';
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   element->bytes == 1 ? '|' : '<', element->numpy, shape);
  // The values begin at a multiple of 64 bytes.
  constexpr std::size_t kAlignment = 64;
  const std::size_t before = kMagic.size() + 4;
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string bytes{kMagic};
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xffU),
            static_cast<char>(header.size() >> 8U)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return bytes;
}

}  // namespace placewright
