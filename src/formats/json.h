// A parsed JSON text as readers see it: every value knows its file and its JSON pointer, so that a
// complaint about it names both.
//
// The text goes through nlohmann's event parser into one flat array of values in reading order (a
// container is followed by what it contains, and knows where that ends): about 100 MB/s, 24 bytes
// per value, no recursion. Pointers are worked out only when something is wrong. Refused, with the
// place: anything that is no JSON, numbers that are not finite, strings that are not UTF-8, nesting
// deeper than kDeepestNesting, a key that an object has twice.

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "problem/spelling.h"

namespace placewright {

inline constexpr std::size_t kDeepestNesting = 200;

class JsonValue;

class JsonDocument {
 public:
  // `file` is what messages call it. Throws InputError.
  JsonDocument(std::string_view text, std::string file);

  [[nodiscard]] JsonValue root() const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  friend class JsonValue;
  friend class JsonBuilder;

  enum class Kind : std::uint8_t { null, boolean, integer, natural, real, text, array, object };
  struct Stretch {
    std::uint32_t begin;
    std::uint32_t length;
  };
  struct Node {
    Stretch key{0, 0};  // in an object; a stretch of characters_
    std::uint32_t end;  // where the next sibling is
    Kind kind;
    union {
      std::int64_t integer;
      std::uint64_t natural;  // above what an int64_t holds
      double real;
      Stretch text;
      std::size_t count;
    };
  };

  [[nodiscard]] std::string_view characters(Stretch stretch) const {
    return std::string_view(characters_).substr(stretch.begin, stretch.length);
  }

  std::string file_;
  std::vector<Node> nodes_;
  std::string characters_;
};

// One value of a document, which must outlive it. Accessors that find another type than they
// promise throw InputError ("expected a number, found the text 'many'").
class JsonValue {
 public:
  template <class Value>
  class Children;
  struct Member;

  [[nodiscard]] bool is_null() const { return node().kind == JsonDocument::Kind::null; }
  [[nodiscard]] bool is_text() const { return node().kind == JsonDocument::Kind::text; }
  [[nodiscard]] bool is_array() const { return node().kind == JsonDocument::Kind::array; }
  [[nodiscard]] bool is_object() const { return node().kind == JsonDocument::Kind::object; }
  [[nodiscard]] bool is_integer() const { return node().kind == JsonDocument::Kind::integer; }

  [[nodiscard]] double number() const;
  [[nodiscard]] double amount() const;  // a number that is not negative
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const;  // also 6.0
  [[nodiscard]] std::uint64_t natural() const;                                      // 0 .. 2^64 - 1
  [[nodiscard]] bool flag() const;  // true, false, 1, 0
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] std::string id() const;  // a text, or an integer as text
  template <Spelled Enum>
  [[nodiscard]] Enum one_of() const;  // the value of this name

  [[nodiscard]] std::size_t size() const { return node().count; }           // arrays and objects
  [[nodiscard]] Children<JsonValue> elements() const;                       // of an array
  [[nodiscard]] Children<Member> members() const;                           // of an object
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;  // in an object
  [[nodiscard]] JsonValue at(std::string_view key) const;                   // ... or throws

  [[nodiscard]] const std::string& file() const { return document_->file(); }
  [[nodiscard]] std::string pointer() const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument& document, std::size_t index)
      : document_(&document), index_(index) {}

  [[nodiscard]] const JsonDocument::Node& node() const { return document_->nodes_[index_]; }
  [[nodiscard]] std::string described() const;
  [[noreturn]] void fail_expecting(std::string_view expected) const;
  [[noreturn]] void fail_expecting_one_of(const std::vector<std::string>& names) const;

  const JsonDocument* document_;
  std::size_t index_;
};

template <Spelled Enum>
Enum JsonValue::one_of() const {
  const std::optional<Enum> value = value_named<Enum>(text());
  if (!value) fail_expecting_one_of(names_of<Enum>());
  return *value;
}

struct JsonValue::Member {
  std::string_view key;
  JsonValue value;
};

// The values in an array, or the members of an object, in the order of the text.
template <class Value>
class JsonValue::Children {
 public:
  class Iterator {
   public:
    Iterator(const JsonDocument& document, std::size_t index)
        : document_(&document), index_(index) {}
    Value operator*() const;
    Iterator& operator++() {
      index_ = document_->nodes_[index_].end;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const JsonDocument* document_;
    std::size_t index_;
  };

  explicit Children(JsonValue parent) : parent_(parent) {}
  [[nodiscard]] Iterator begin() const { return {*parent_.document_, parent_.index_ + 1}; }
  [[nodiscard]] Iterator end() const { return {*parent_.document_, parent_.node().end}; }
  [[nodiscard]] std::size_t size() const { return parent_.size(); }

 private:
  JsonValue parent_;
};

template <>
inline JsonValue JsonValue::Children<JsonValue>::Iterator::operator*() const {
  return {*document_, index_};
}

template <>
inline JsonValue::Member JsonValue::Children<JsonValue::Member>::Iterator::operator*() const {
  return {document_->characters(document_->nodes_[index_].key), {*document_, index_}};
}

// Collects a warning for each key that our own formats do not know, up to a screenful.
class UnknownKeys {
 public:
  void check(JsonValue object, std::span<const std::string_view> known);
  void check(JsonValue object, std::initializer_list<std::string_view> known) {
    check(object, std::span(known.begin(), known.size()));
  }
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  std::vector<std::string> warnings_;
  std::size_t left_off_ = 0;
};

// Building JSON text: a number that reads back as the same double (null where it is not finite),
// and a string in quotes.
void append_number(std::string& text, double number);
void append_quoted(std::string& text, std::string_view content);

}  // namespace placewright
