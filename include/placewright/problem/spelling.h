// The names of an enumeration's values, stated once: files, flags, help, completion and messages
// all take them from one table beside the enumeration.
//
//   enum class Colour { red, dark_blue };
//   template <>
//   inline constexpr auto kSpellings<Colour> = std::to_array<Spelling<Colour>>(
//       {{Colour::red, "red", "as blood"}, {Colour::dark_blue, "dark-blue", "as the sea"}});
//
//   name_of(Colour::dark_blue)        "dark-blue"
//   value_named<Colour>("red")        Colour::red
//   values_of<Colour>(), names_of<Colour>()   all of them, in the order of the table

#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

template <class Enum>
struct Spelling {
  Enum value;
  std::string_view name;
  std::string_view meaning = {};  // a few words, where the name needs them
};

// Every value once, in the order in which lists show them. Specialised for each enumeration that
// has names.
template <class Enum>
inline constexpr std::array<Spelling<Enum>, 0> kSpellings{};

template <class Enum>
concept Spelled = !kSpellings<Enum>.empty();

template <Spelled Enum>
constexpr std::string_view name_of(Enum value) {
  for (const auto& spelling : kSpellings<Enum>) {
    if (spelling.value == value) return spelling.name;
  }
  return {};
}

// The value of this name; nullopt if there is none.
template <Spelled Enum>
constexpr std::optional<Enum> value_named(std::string_view name) {
  for (const auto& spelling : kSpellings<Enum>) {
    if (spelling.name == name) return spelling.value;
  }
  return std::nullopt;
}

template <Spelled Enum>
constexpr auto values_of() {
  std::array<Enum, kSpellings<Enum>.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kSpellings<Enum>[i].value;
  return values;
}

template <Spelled Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& spelling : kSpellings<Enum>) names.emplace_back(spelling.name);
  return names;
}

}  // namespace placewright
