// JSON documents as text.

#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace placewright {

// `indent` blanks for each level; -1: all in one line. Characters on which a terminal acts are
// escaped (printable.h), and what is not UTF-8 is replaced.
std::string json_text(const nlohmann::ordered_json& document, int indent);

}  // namespace placewright
