#include "formats/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/input_error.h"
#include "formats/json_text.h"
#include "formats/text_file.h"
#include "formats/utf8.h"

namespace placewright {
namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 27;

void append_pointer_token(std::string& pointer, std::string_view key) {
  pointer += '/';
  for (const char character : key) {
    if (character == '~') {
      pointer += "~0";
    } else if (character == '/') {
      pointer += "~1";
    } else {
      pointer += character;
    }
  }
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kShown = 40;
  if (text.size() <= kShown) return std::string(text);
  std::size_t length = kShown;
  // Not in the middle of a UTF-8 character.
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return std::string(text.substr(0, length)) + "…";
}

std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n');
  const std::size_t column =
      line_begin == std::string_view::npos ? position + 1 : position - line_begin;
  return fmt::format("line {}, column {}", line, column);
}

// "NaN", "-Infinity", … around the position, which other programs write although JSON has no such
// numbers; empty if the text is something else.
std::string_view non_finite_literal(std::string_view text, std::size_t position) {
  const auto part_of_word = [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           character == '-' || character == '+';
  };
  std::size_t begin = std::min(position, text.size());
  while (begin > 0 && part_of_word(text[begin - 1])) --begin;
  std::size_t end = begin;
  while (end < text.size() && part_of_word(text[end])) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  std::string lower;
  for (const char character : word) {
    if (character == '-' || character == '+') continue;
    lower += static_cast<char>(character | 0x20);
  }
  return lower == "nan" || lower == "inf" || lower == "infinity" ? word : std::string_view{};
}

// What nlohmann's message says, without its code, position and copy of the last characters.
std::string plain_complaint(std::string_view complaint) {
  const std::size_t detail = complaint.find(" - ");
  if (detail != std::string_view::npos) complaint.remove_prefix(detail + 3);
  const std::size_t copy = complaint.find("; last read:");
  if (copy != std::string_view::npos) {
    const std::size_t expectation = complaint.rfind("; expected");
    std::string text(complaint.substr(0, copy));
    if (expectation != std::string_view::npos && expectation > copy) {
      text += complaint.substr(expectation);
    }
    return text;
  }
  return std::string(complaint);
}

}  // namespace

// Receives the events of nlohmann's parser.
class JsonBuilder {
 public:
  JsonBuilder(JsonDocument& document, std::string_view text) : document_(document), text_(text) {}

  bool null() {
    add(Kind::null);
    return true;
  }
  bool boolean(bool value) {
    add(Kind::boolean).integer = value ? 1 : 0;
    return true;
  }
  bool number_integer(std::int64_t value) {
    add(Kind::integer).integer = value;
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return number_integer(static_cast<std::int64_t>(value));
    }
    add(Kind::natural).natural = value;
    return true;
  }
  bool number_float(double value, const std::string& /*literal*/) {
    add(Kind::real).real = value;
    return true;
  }
  bool string(const std::string& value) {
    add(Kind::text).text = store(value);
    return true;
  }
  bool binary(const nlohmann::json::binary_t& /*value*/) { return false; }
  bool key(const std::string& value) {
    key_ = store(value);
    return true;
  }
  bool start_object(std::size_t /*size*/) { return open(Kind::object); }
  bool start_array(std::size_t /*size*/) { return open(Kind::array); }
  bool end_object() {
    refuse_equal_keys();
    return close();
  }
  bool end_array() { return close(); }

  bool parse_error(std::size_t bytes_read, const std::string& last_token,
                   const nlohmann::json::exception& error) {
    const std::size_t position = std::min(bytes_read > 0 ? bytes_read - 1 : 0, text_.size());
    if (error.id == 406) {
      throw InputError(document_.file_, next_pointer(),
                       fmt::format("the number {} is too large, expected a finite number",
                                   shortened(last_token)));
    }
    const std::string_view literal = non_finite_literal(text_, position);
    if (!literal.empty()) {
      throw InputError(document_.file_, next_pointer(),
                       fmt::format("found {}, expected a finite number", literal));
    }
    const std::string complaint = plain_complaint(error.what());
    const bool truncated = complaint.find("unexpected end of input") == 0;
    throw InputError(document_.file_, line_and_column(text_, truncated ? text_.size() : position),
                     truncated ? "the text ends in the middle, it seems to be cut off"
                               : fmt::format("is not JSON: {}", complaint));
  }

 private:
  using Kind = JsonDocument::Kind;

  JsonDocument::Node& add(Kind kind) {
    if (!open_.empty()) ++document_.nodes_[open_.back()].count;
    if (document_.nodes_.size() == kMostValues) {
      throw InputError(document_.file_, next_pointer(),
                       fmt::format("has more than {} values, the most that is read", kMostValues));
    }
    JsonDocument::Node node{};
    node.key = key_;
    node.end = static_cast<std::uint32_t>(document_.nodes_.size() + 1);
    node.kind = kind;
    document_.nodes_.push_back(node);
    return document_.nodes_.back();
  }

  bool open(Kind kind) {
    if (open_.size() == kDeepestNesting) {
      throw InputError(document_.file_, next_pointer(),
                       fmt::format("is nested deeper than {} levels", kDeepestNesting));
    }
    add(kind).count = 0;
    open_.push_back(document_.nodes_.size() - 1);
    return true;
  }

  bool close() {
    document_.nodes_[open_.back()].end = static_cast<std::uint32_t>(document_.nodes_.size());
    open_.pop_back();
    return true;
  }

  // Of two values under one key the reader would take one, and whoever wrote the file may have
  // meant the other.
  void refuse_equal_keys() {
    const std::size_t object = open_.back();
    keys_.clear();
    for (std::size_t child = object + 1; child < document_.nodes_.size();
         child = document_.nodes_[child].end) {
      keys_.push_back(child);
    }
    const auto key_of = [this](std::size_t child) {
      return document_.characters(document_.nodes_[child].key);
    };
    // Of two equal keys the later one comes second here too, and is the one that is named.
    std::sort(keys_.begin(), keys_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(key_of(a), a) < std::pair(key_of(b), b);
    });
    const auto equal =
        std::adjacent_find(keys_.begin(), keys_.end(),
                           [&](std::size_t a, std::size_t b) { return key_of(a) == key_of(b); });
    if (equal == keys_.end()) return;
    key_ = document_.nodes_[*std::next(equal)].key;
    throw InputError(document_.file_, next_pointer(), "the key is given twice in this object");
  }

  JsonDocument::Stretch store(const std::string& value) {
    const JsonDocument::Stretch stretch{static_cast<std::uint32_t>(document_.characters_.size()),
                                        static_cast<std::uint32_t>(value.size())};
    document_.characters_ += value;
    return stretch;
  }

  // Of the value that would come now: the open containers, and the place in the innermost one.
  [[nodiscard]] std::string next_pointer() const {
    std::string pointer;
    for (std::size_t depth = 0; depth < open_.size(); ++depth) {
      const JsonDocument::Node& container = document_.nodes_[open_[depth]];
      const bool innermost = depth + 1 == open_.size();
      if (container.kind == Kind::object) {
        append_pointer_token(
            pointer,
            document_.characters(innermost ? key_ : document_.nodes_[open_[depth + 1]].key));
      } else {
        pointer += fmt::format("/{}", innermost ? container.count : container.count - 1);
      }
    }
    return pointer;
  }

  JsonDocument& document_;
  std::string_view text_;
  JsonDocument::Stretch key_{0, 0};
  std::vector<std::size_t> open_;
  std::vector<std::size_t> keys_;  // of the object that ends; kept for its memory
};

JsonDocument::JsonDocument(std::string_view text, std::string file) : file_(std::move(file)) {
  const std::string_view content = utf8_content(text, file_);
  if (content.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError(file_, "", "is empty, expected JSON");
  }
  if (content.size() > kLargestFile) {
    throw InputError(file_, "",
                     fmt::format("is larger than {} bytes, the most that is read", kLargestFile));
  }
  // nlohmann's parser takes it for the end, and would not look at what follows.
  if (const std::size_t zero = content.find('\0'); zero != std::string_view::npos) {
    throw InputError(file_, line_and_column(content, zero), "is not JSON: it holds a NUL byte");
  }
  characters_.reserve(content.size() / 2);
  nodes_.reserve(content.size() / 16);
  JsonBuilder builder(*this, content);
  nlohmann::json::sax_parse(content.begin(), content.end(), &builder);
}

JsonValue JsonDocument::root() const {
  return {*this, 0};
}

double JsonValue::number() const {
  if (node().kind == JsonDocument::Kind::real) return node().real;
  if (node().kind == JsonDocument::Kind::integer) return static_cast<double>(node().integer);
  if (node().kind == JsonDocument::Kind::natural) return static_cast<double>(node().natural);
  fail_expecting("a number");
}

double JsonValue::amount() const {
  const double value = number();
  if (value < 0) fail_expecting("a number that is not negative");
  return value;
}

std::int64_t JsonValue::integer(std::int64_t least, std::int64_t most) const {
  constexpr double kExact = 9007199254740992.0;  // 2^53: above it a double skips integers
  std::optional<std::int64_t> value;
  if (is_integer()) {
    value = node().integer;
  } else if (node().kind == JsonDocument::Kind::real && std::abs(node().real) <= kExact &&
             std::trunc(node().real) == node().real) {
    value = static_cast<std::int64_t>(node().real);
  }
  if (!value || *value < least || *value > most) {
    fail_expecting(fmt::format("a whole number from {} to {}", least, most));
  }
  return *value;
}

std::uint64_t JsonValue::natural() const {
  if (node().kind == JsonDocument::Kind::natural) return node().natural;
  return static_cast<std::uint64_t>(integer(0, std::numeric_limits<std::int64_t>::max()));
}

bool JsonValue::flag() const {
  const bool is_number = is_integer() || node().kind == JsonDocument::Kind::real;
  if (node().kind == JsonDocument::Kind::boolean) return node().integer != 0;
  if (is_number && (number() == 0 || number() == 1)) return number() == 1;
  fail_expecting("true or false (or 1 or 0)");
}

std::string_view JsonValue::text() const {
  if (!is_text()) fail_expecting("a text");
  return document_->characters(node().text);
}

std::string JsonValue::id() const {
  if (is_text()) return std::string(text());
  if (node().kind == JsonDocument::Kind::natural) return std::to_string(node().natural);
  if (!is_integer() && node().kind != JsonDocument::Kind::real) {
    fail_expecting("an id (a whole number or a text)");
  }
  return std::to_string(
      integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

void JsonValue::fail_expecting_one_of(const std::vector<std::string>& names) const {
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) known += i + 1 == names.size() ? " or " : ", ";
    known += fmt::format("'{}'", names[i]);
  }
  fail(fmt::format("expected {}, found '{}'", known, text()));
}

JsonValue::Children<JsonValue> JsonValue::elements() const {
  if (!is_array()) fail_expecting("a list");
  return Children<JsonValue>(*this);
}

JsonValue::Children<JsonValue::Member> JsonValue::members() const {
  if (!is_object()) fail_expecting("an object");
  return Children<Member>(*this);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (const auto& [name, value] : members()) {
    if (name == key) return value;
  }
  return std::nullopt;
}

JsonValue JsonValue::at(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail(fmt::format("the key '{}' is missing", key));
  return *found;
}

std::string JsonValue::pointer() const {
  std::string pointer;
  std::size_t at = 0;
  while (at != index_) {
    const bool in_object = document_->nodes_[at].kind == JsonDocument::Kind::object;
    std::size_t child = at + 1;
    std::size_t number = 0;
    for (; document_->nodes_[child].end <= index_; ++number) child = document_->nodes_[child].end;
    if (in_object) {
      append_pointer_token(pointer, document_->characters(document_->nodes_[child].key));
    } else {
      pointer += fmt::format("/{}", number);
    }
    at = child;
  }
  return pointer;
}

void JsonValue::fail(const std::string& message) const {
  throw InputError(file(), pointer(), message);
}

std::string JsonValue::described() const {
  switch (node().kind) {
    case JsonDocument::Kind::null:
      return "null";
    case JsonDocument::Kind::boolean:
      return node().integer != 0 ? "true" : "false";
    case JsonDocument::Kind::integer:
      return fmt::format("{}", node().integer);
    case JsonDocument::Kind::natural:
      return fmt::format("{}", node().natural);
    case JsonDocument::Kind::real:
      return fmt::format("{}", node().real);
    case JsonDocument::Kind::text:
      return fmt::format("the text '{}'", shortened(text()));
    case JsonDocument::Kind::array:
      return "a list";
    case JsonDocument::Kind::object:
      return "an object";
  }
  return "something else";
}

void JsonValue::fail_expecting(std::string_view expected) const {
  fail(fmt::format("expected {}, found {}", expected, described()));
}

void UnknownKeys::check(JsonValue object, std::span<const std::string_view> known) {
  constexpr std::size_t kShown = 20;
  for (const auto& [key, value] : object.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (warnings_.size() == kShown) {
      ++left_off_;
      continue;
    }
    warnings_.push_back(
        fmt::format("{}: {}: the key is not known and was ignored", value.file(), value.pointer()));
  }
}

std::vector<std::string> UnknownKeys::warnings() const {
  std::vector<std::string> all = warnings_;
  if (left_off_ > 0) all.push_back(fmt::format("{} more unknown keys were ignored", left_off_));
  return all;
}

void append_number(std::string& text, double number) {
  if (!std::isfinite(number)) {
    text += "null";
    return;
  }
  // The shortest digits that read back as the same double.
  std::array<char, 32> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), result.ptr);
}

void append_quoted(std::string& text, std::string_view content) {
  const auto plain = [](char character) {
    return character >= 0x20 && character < 0x7f && character != '"' && character != '\\';
  };
  if (std::all_of(content.begin(), content.end(), plain)) {
    text += '"';
    text += content;
    text += '"';
    return;
  }
  text += json_text(nlohmann::ordered_json(content), -1);
}

}  // namespace placewright
