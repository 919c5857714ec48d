// Names of ops as names of modules: parts joined by dots or slashes, "model.layers.12.mlp".

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

std::vector<std::string> name_parts(std::string_view name);

// The number, if the text is nothing but its digits.
std::optional<std::size_t> whole_number(std::string_view text);

struct LayerName {
  std::string stack;  // "model.layers"
  std::size_t number;
};

// The layer that an op belongs to: the first part of its name that is a number.
std::optional<LayerName> layer_named(std::string_view name);

// Whether the op is the module or lies inside it; the empty name is the whole model.
bool is_inside(std::string_view name, std::string_view module);

}  // namespace placewright
