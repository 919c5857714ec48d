// Numbers as models take and give them: the type of the elements, a shape, and the values.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace placewright {

// What `placewright info MODEL` calls the elements of an array of `Number`.
template <class Number>
inline constexpr std::string_view kElement = "";
template <>
inline constexpr std::string_view kElement<float> = "f32";
template <>
inline constexpr std::string_view kElement<double> = "f64";
template <>
inline constexpr std::string_view kElement<std::int8_t> = "i8";
template <>
inline constexpr std::string_view kElement<std::int16_t> = "i16";
template <>
inline constexpr std::string_view kElement<std::int32_t> = "i32";
template <>
inline constexpr std::string_view kElement<std::int64_t> = "i64";
template <>
inline constexpr std::string_view kElement<std::uint8_t> = "u8";
template <>
inline constexpr std::string_view kElement<std::uint16_t> = "u16";
template <>
inline constexpr std::string_view kElement<std::uint32_t> = "u32";
template <>
inline constexpr std::string_view kElement<std::uint64_t> = "u64";

struct Array {
  std::string element = "f32";  // also "f16", "bf16" and "boolean" (one byte each)
  std::vector<std::size_t> shape = {};
  std::vector<std::byte> bytes = {};  // the last dimension varies fastest

  [[nodiscard]] std::size_t count() const {
    std::size_t count = 1;
    for (const std::size_t size : shape) count *= size;
    return count;
  }

  // Throws std::invalid_argument if the shape has another number of elements.
  template <class Number>
  static Array of(std::vector<std::size_t> shape, std::span<const Number> values) {
    static_assert(!kElement<Number>.empty(), "not a type of elements");
    Array array{.element = std::string{kElement<Number>}, .shape = std::move(shape), .bytes = {}};
    if (array.count() != values.size()) {
      throw std::invalid_argument("the shape of an array has another number of elements");
    }
    array.bytes.resize(values.size_bytes());
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), values.size_bytes());
    return array;
  }

  // Throws std::invalid_argument if the elements are of another type.
  template <class Number>
  [[nodiscard]] std::vector<Number> values() const {
    if (element != kElement<Number>) {
      throw std::invalid_argument("the elements of the array are " + element);
    }
    std::vector<Number> values(bytes.size() / sizeof(Number));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Number));
    return values;
  }
};

// By the name of an input or output.
using NamedArrays = std::map<std::string, Array>;

}  // namespace placewright
