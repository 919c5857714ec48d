#include "backends/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/array_files.h"

namespace placewright {
namespace {

// splitmix64 (S. Vigna): the same bytes on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t word = state_;
    word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9U;
    word = (word ^ (word >> 27U)) * 0x94d049bb133111ebU;
    return word ^ (word >> 31U);
  }
  double signed_unit() { return static_cast<double>(next() >> 11U) * 0x1p-52 - 1; }

 private:
  std::uint64_t state_;
};

template <class Number>
void fill(HostBuffer& bytes, std::size_t count, auto next) {
  auto* values = reinterpret_cast<Number*>(bytes.data());
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Number>(next());
}

std::size_t element_count(const TensorType& type) {
  std::size_t count = 1;
  for (const std::size_t size : type.shape) count *= size;
  return count;
}

// Half precision of a number in [-1, 1), by truncation.
std::uint16_t half_of(double number) {
  const auto value = static_cast<float>(number);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const int exponent = static_cast<int>((bits >> 23U) & 0xffU) - 127 + 15;
  if (exponent <= 0) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign | (static_cast<std::uint32_t>(exponent) << 10U) |
                                    ((bits >> 13U) & 0x3ffU));
}

// Whole inputs that are no ids of a vocabulary: masks are all 1, token types 0 or 1.
std::uint64_t whole_number(const std::string& name, std::uint64_t random) {
  if (name.find("mask") != std::string::npos) return 1;
  if (name.find("token_type") != std::string::npos) return random % 2;
  return random % 100;
}

template <class Real>
double real_difference(std::span<const std::byte> expected, std::span<const std::byte> found) {
  const auto* a = reinterpret_cast<const Real*>(expected.data());
  const auto* b = reinterpret_cast<const Real*>(found.data());
  double largest = 0;
  double apart = 0;
  for (std::size_t i = 0; i < expected.size() / sizeof(Real); ++i) {
    const double left = a[i];
    const double right = b[i];
    if (std::isnan(left) != std::isnan(right)) return std::numeric_limits<double>::infinity();
    if (left == right || std::isnan(left)) continue;
    largest = std::max(largest, std::abs(left));
    apart = std::max(apart, std::abs(left - right));
  }
  for (std::size_t i = 0; i < expected.size() / sizeof(Real); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  if (apart == 0) return 0;
  return largest > 0 ? apart / largest : std::numeric_limits<double>::infinity();
}

}  // namespace

HostBuffer seeded_input(const GraphInput& input, std::uint64_t seed) {
  const TensorType& type = input.type;
  HostBuffer bytes(static_cast<std::size_t>(type.bytes));
  Numbers numbers(seed);
  const std::size_t count = element_count(type);
  const auto real = [&] { return numbers.signed_unit(); };
  const auto whole = [&] { return whole_number(input.name, numbers.next()); };
  if (type.element == "f32") {
    fill<float>(bytes, count, real);
  } else if (type.element == "f64") {
    fill<double>(bytes, count, real);
  } else if (type.element == "f16") {
    fill<std::uint16_t>(bytes, count, [&] { return half_of(real()); });
  } else if (type.element == "i64" || type.element == "u64") {
    fill<std::int64_t>(bytes, count, whole);
  } else if (type.element == "i32" || type.element == "u32") {
    fill<std::int32_t>(bytes, count, whole);
  } else if (type.element == "i8" || type.element == "u8") {
    fill<std::int8_t>(bytes, count, whole);
  } else if (type.kind == ElementKind::boolean) {
    fill<std::int8_t>(bytes, count, [] { return 1; });
  } else {
    throw std::invalid_argument(
        fmt::format("the input '{}' has elements of the type {}, for which no input can be made",
                    input.name, type.element));
  }
  return bytes;
}

std::vector<std::string> model_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const ModelId model : problem.models()) names.push_back(problem.model(model).name);
  return names;
}

std::vector<NamedArrays> by_model(std::span<const std::string> models, const NamedArrays& arrays) {
  std::vector<NamedArrays> result(models.size());
  for (const auto& [name, array] : arrays) {
    std::size_t model = 0;
    while (model < models.size() && !name.starts_with(models[model] + ':')) ++model;
    const bool prefixed = model < models.size();
    if (!prefixed && models.size() > 1) {
      throw std::invalid_argument(fmt::format(
          "'{}' does not begin with the name of a model, as in '{}:{}'; the models "
          "are: {}",
          name, models.front(), name.empty() ? "INPUT" : name, fmt::join(models, ", ")));
    }
    const std::string own = prefixed ? name.substr(models[model].size() + 1) : name;
    if (!result[prefixed ? model : 0].emplace(own, array).second) {
      throw std::invalid_argument(
          fmt::format("the input '{}' is given twice, once with the name of its model", own));
    }
  }
  return result;
}

NamedArrays with_model_names(std::span<const std::string> models,
                             const std::vector<NamedArrays>& arrays) {
  if (models.size() == 1) return arrays.front();
  NamedArrays result;
  for (std::size_t model = 0; model < models.size(); ++model) {
    for (const auto& [name, array] : arrays[model]) {
      result[fmt::format("{}:{}", models[model], name)] = array;
    }
  }
  return result;
}

NamedArrays fitted_inputs(const ModelGraph& graph, const NamedArrays& given) {
  NamedArrays fitted;
  for (const auto& [name, array] : given) {
    const auto is_meant = [&, &wanted = name](const GraphInput& each) {
      return wanted.empty() ? graph.inputs.size() == 1 : each.name == wanted;
    };
    const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(), is_meant);
    if (input == graph.inputs.end()) {
      std::vector<std::string> names;
      for (const GraphInput& each : graph.inputs) names.push_back(each.name);
      throw std::invalid_argument(
          name.empty()
              ? fmt::format("it is not clear which input is meant: {}", fmt::join(names, ", "))
              : fmt::format("the model has no input '{}'; its inputs are: {}", name,
                            fmt::join(names, ", ")));
    }
    if (fitted.contains(input->name)) {
      throw std::invalid_argument(
          fmt::format("the input '{}' is given twice, once without its name", input->name));
    }
    try {
      fitted[input->name] = as_input(array, input->type.element, input->type.shape);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("the input '{}': {}", input->name, error.what()));
    }
  }
  return fitted;
}

double difference(const TensorType& type, std::span<const std::byte> expected,
                  std::span<const std::byte> found) {
  if (expected.size() != found.size()) return std::numeric_limits<double>::infinity();
  if (type.element == "f32") return real_difference<float>(expected, found);
  if (type.element == "f64") return real_difference<double>(expected, found);
  return std::memcmp(expected.data(), found.data(), expected.size()) == 0 ? 0 : 1;
}

}  // namespace placewright
