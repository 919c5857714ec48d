#include "formats/json_text.h"

#include <nlohmann/json.hpp>

#include "formats/printable.h"

namespace placewright {

std::string json_text(const nlohmann::ordered_json& document, int indent) {
  return with_escapes(
      document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace placewright
