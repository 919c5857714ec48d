#include "formats/module_names.h"

#include <charconv>

namespace placewright {
namespace {

constexpr std::string_view kJoints = "./";

}  // namespace

std::vector<std::string> name_parts(std::string_view name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of(kJoints, begin), name.size());
    if (end > begin) parts.emplace_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<LayerName> layer_named(std::string_view name) {
  std::string stack;
  for (const std::string& part : name_parts(name)) {
    if (const auto number = whole_number(part)) return LayerName{stack, *number};
    stack += (stack.empty() ? "" : ".") + part;
  }
  return std::nullopt;
}

bool is_inside(std::string_view name, std::string_view module) {
  if (module.empty() || name == module) return true;
  return name.starts_with(module) && name.size() > module.size() &&
         kJoints.find(name[module.size()]) != std::string_view::npos;
}

}  // namespace placewright
