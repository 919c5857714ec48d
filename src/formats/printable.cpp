#include "formats/printable.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace placewright {
namespace {

constexpr char32_t kInvalid = 0xFFFD;

struct Character {
  char32_t code;      // kInvalid for a byte that is not part of valid UTF-8
  std::size_t bytes;  // how many it takes
  bool valid;
};

// The first character of a text that is not empty (Unicode, table 3-7).
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {kInvalid, 1, false};
  char32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {kInvalid, 1, false};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {kInvalid, 1, false};
  return {code, length, true};
}

bool acts_on_a_terminal(const Character& character) {
  const char32_t code = character.code;
  const auto within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  return !character.valid || code < 0x20 || within(0x7F, 0x9F) ||  // C0, DEL, C1
         code == 0x061C || within(0x200E, 0x200F) ||               // marks of direction
         within(0x2028, 0x202E) ||  // separators, embeddings and overrides
         within(0x2066, 0x2069);    // isolates
}

// The text with `replacement(character)` for each harmful character.
template <class Replacement>
std::string replaced(std::string_view text, Replacement replacement) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    if (acts_on_a_terminal(character)) {
      result += replacement(character);
    } else {
      result += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return replaced(text, [](const Character&) { return "?"; });
}

std::string with_escapes(std::string_view text) {
  return replaced(text, [](const Character& character) {
    if (character.code == '\n') return std::string{"\n"};
    return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.code));
  });
}

std::string file_name_of(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
  return name.starts_with('.') ? '_' + name : name;
}

}  // namespace placewright
