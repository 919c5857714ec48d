#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/array_files.h"
#include "formats/image.h"
#include "formats/input_error.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

using Shape = std::vector<std::size_t>;

std::string shape_text(const Shape& shape) {
  return shape.empty() ? "a single number" : fmt::format("{}", fmt::join(shape, "x"));
}

float float_of_half(std::uint16_t half) {
  const int exponent = (half >> 10U) & 0x1f;
  const auto fraction = static_cast<float>(half & 0x3ffU);
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

// To the nearest, ties to even.
std::uint16_t half_of_float(float number) {
  const std::uint16_t sign = std::signbit(number) ? 0x8000U : 0;
  const double size = std::abs(static_cast<double>(number));
  if (std::isnan(number)) return 0x7e00U;
  if (size >= 65520) return sign | 0x7c00U;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int place = std::max(exponent, -13) - 11;  // of the last bit that is kept
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -place)));
  if (units < 1024) return static_cast<std::uint16_t>(sign | units);
  return static_cast<std::uint16_t>(sign |
                                    ((static_cast<std::uint32_t>(place + 24) << 10U) + units));
}

float float_of_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// To the nearest, ties to even.
std::uint16_t bfloat_of_float(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (std::isnan(number)) return 0x7fc0U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

template <class Stored, class Each>
void read_each(const Array& array, const Each& each) {
  for (std::size_t i = 0; i < array.bytes.size() / sizeof(Stored); ++i) {
    Stored value{};
    std::memcpy(&value, array.bytes.data() + i * sizeof(Stored), sizeof(Stored));
    each(i, value);
  }
}

// Calls `each(place, number)` for all elements; false if their type is not known.
template <class Each>
bool for_each_number(const Array& array, const Each& each) {
  const auto as_is = [&]<class Number>(Number) {
    if (array.element != kElement<Number>) return false;
    read_each<Number>(array, [&](std::size_t i, Number value) { each(i, value); });
    return true;
  };
  if (array.element == "f16") {
    read_each<std::uint16_t>(array,
                             [&](std::size_t i, std::uint16_t v) { each(i, float_of_half(v)); });
    return true;
  }
  if (array.element == "bf16") {
    read_each<std::uint16_t>(array,
                             [&](std::size_t i, std::uint16_t v) { each(i, float_of_bfloat(v)); });
    return true;
  }
  if (array.element == "boolean") {
    read_each<std::uint8_t>(array, [&](std::size_t i, std::uint8_t v) { each(i, int{v != 0}); });
    return true;
  }
  return as_is(float{}) || as_is(double{}) || as_is(std::int8_t{}) || as_is(std::int16_t{}) ||
         as_is(std::int32_t{}) || as_is(std::int64_t{}) || as_is(std::uint8_t{}) ||
         as_is(std::uint16_t{}) || as_is(std::uint32_t{}) || as_is(std::uint64_t{});
}

template <class Number>
[[noreturn]] void fail_at(std::size_t place, Number number, std::string_view element) {
  throw std::invalid_argument(
      fmt::format("element {} is {}, which does not fit {}", place, number, element));
}

// A number that is finite must not become infinite.
template <class To, class From>
To checked(From number, std::size_t place, To converted, std::string_view element) {
  if (std::isinf(converted) && std::isfinite(static_cast<double>(number))) {
    fail_at(place, number, element);
  }
  return converted;
}

template <class To, class From>
To converted_number(std::size_t place, From number) {
  if constexpr (std::is_floating_point_v<To>) {
    return checked(number, place, static_cast<To>(number), kElement<To>);
  } else if constexpr (std::is_floating_point_v<From>) {
    // The limit itself is a power of two, which From has; the largest number may not be.
    const auto limit = std::ldexp(static_cast<From>(1), std::numeric_limits<To>::digits);
    const From least = std::is_signed_v<To> ? -limit : 0;
    if (!(number >= least && number < limit && std::trunc(number) == number)) {
      fail_at(place, number, kElement<To>);
    }
    return static_cast<To>(number);
  } else {
    if (!std::in_range<To>(number)) fail_at(place, number, kElement<To>);
    return static_cast<To>(number);
  }
}

template <class Stored, class Convert>
Array converted_by(const Array& array, const std::string& element, const Convert& convert) {
  Array result{.element = element, .shape = array.shape, .bytes = {}};
  result.bytes.resize(array.count() * sizeof(Stored));
  const bool known = for_each_number(array, [&](std::size_t place, auto number) {
    const Stored value = convert(place, number);
    std::memcpy(result.bytes.data() + place * sizeof(Stored), &value, sizeof(Stored));
  });
  if (!known) throw std::invalid_argument(fmt::format("elements of the type {}", array.element));
  return result;
}

template <class To>
bool convert_to(const Array& array, const std::string& element, Array& result) {
  if (element != kElement<To>) return false;
  result = converted_by<To>(array, element, [](std::size_t place, auto number) {
    return converted_number<To>(place, number);
  });
  return true;
}

Array with_elements(const Array& array, const std::string& element) {
  if (array.element == element) return array;
  if (element == "f16") {
    return converted_by<std::uint16_t>(array, element, [](std::size_t place, auto number) {
      const std::uint16_t half = half_of_float(static_cast<float>(number));
      checked(number, place, float_of_half(half), "f16");
      return half;
    });
  }
  if (element == "bf16") {
    return converted_by<std::uint16_t>(array, element, [](std::size_t place, auto number) {
      const std::uint16_t bits = bfloat_of_float(static_cast<float>(number));
      checked(number, place, float_of_bfloat(bits), "bf16");
      return bits;
    });
  }
  if (element == "boolean") {
    return converted_by<std::uint8_t>(array, element, [](std::size_t place, auto number) {
      if (number != 0 && number != 1) fail_at(place, number, "boolean");
      return static_cast<std::uint8_t>(number != 0);
    });
  }
  Array result;
  if (convert_to<float>(array, element, result) || convert_to<double>(array, element, result) ||
      convert_to<std::int8_t>(array, element, result) ||
      convert_to<std::int16_t>(array, element, result) ||
      convert_to<std::int32_t>(array, element, result) ||
      convert_to<std::int64_t>(array, element, result) ||
      convert_to<std::uint8_t>(array, element, result) ||
      convert_to<std::uint16_t>(array, element, result) ||
      convert_to<std::uint32_t>(array, element, result) ||
      convert_to<std::uint64_t>(array, element, result)) {
    return result;
  }
  throw std::invalid_argument(fmt::format("it takes elements of the type {}", element));
}

bool is_real(const std::string& element) {
  return element == "f16" || element == "bf16" || element == "f32" || element == "f64";
}

// Each number in [0, 1].
Array scaled_down(const Array& image) {
  return converted_by<float>(
      image, "f32", [](std::size_t, auto number) { return static_cast<float>(number) / 255; });
}

// height x width x 3 -> 3 x height x width
Array channels_first(const Array& image) {
  const std::size_t channels = image.shape[2];
  const std::size_t pixels = image.shape[0] * image.shape[1];
  Array result = image;
  result.shape = {channels, image.shape[0], image.shape[1]};
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      result.bytes[channel * pixels + pixel] = image.bytes[pixel * channels + channel];
    }
  }
  return result;
}

// The shape of one image where an input of this shape takes images: 3xHxW or HxWx3, behind a batch
// of one or not.
std::optional<Shape> image_shape(const Shape& shape) {
  Shape inner = shape;
  if (inner.size() == 4 && inner.front() == 1) inner.erase(inner.begin());
  if (inner.size() == 3 && (inner[0] == 3 || inner[2] == 3)) return inner;
  return std::nullopt;
}

Array image_as_input(const Array& image, const std::string& element, const Shape& shape) {
  const Shape inner = *image_shape(shape);
  Array fitting = inner[0] == 3 ? channels_first(resized(image, inner[1], inner[2]))
                                : resized(image, inner[0], inner[1]);
  fitting.shape = shape;
  return with_elements(is_real(element) ? scaled_down(fitting) : fitting, element);
}

}  // namespace

Array as_input(const Array& array, const std::string& element, const Shape& shape) {
  if (!fits(array, array.bytes.size())) {
    throw std::invalid_argument(fmt::format("it has {} bytes of values, which is not {} of {}",
                                            array.bytes.size(), shape_text(array.shape),
                                            array.element));
  }
  if (is_image(array) && image_shape(shape)) return image_as_input(array, element, shape);
  Shape with_batch = array.shape;
  with_batch.insert(with_batch.begin(), 1);
  if (array.shape != shape && with_batch != shape) {
    throw std::invalid_argument(
        fmt::format("it takes {}, not {}", shape_text(shape), shape_text(array.shape)));
  }
  Array fitting = array;
  fitting.shape = shape;
  return with_elements(fitting, element);
}

Array read_array(const std::string& path) {
  const std::string text = read_whole(path);
  const std::string origin = input_name(path);
  if (path.ends_with(".npy")) return parse_npy(text, origin);
  if (!path.ends_with(".npz")) return parse_image(text, origin);
  NamedArrays arrays = parse_npz(text, origin);
  if (arrays.size() != 1) {
    throw InputError(origin, "", fmt::format("holds {} arrays, not one", arrays.size()));
  }
  return std::move(arrays.begin()->second);
}

}  // namespace placewright
