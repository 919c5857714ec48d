// Records of our own files as lists of fields: one list reads and writes a record, so that the
// reader and the writer cannot disagree. Another field of a file is a line in its list.
//
//   template <>
//   inline constexpr auto kFields<Device> = std::tuple{
//       required("name", &Device::name),
//       required("kind", &Device::kind),                 // an id: the context knows the names
//       optional("memory", &Device::memory).or_null(),   // absent or null: the default of the record
//       stated("latency", &Device::latency)};            // may be absent, but is always written
//
// Texts, amounts (numbers that are not negative), flags, counts from 1, names of enumerations,
// lists and records within records are read and written by their types. For the rest both sides
// take a context: `context.read(json, value)` and `context.append(text, value)` come before what is
// here, so that ids are names. A field of a form of its own, `required("time", &Op::time,
// TimesByKind{})`, goes through `context.read(form, json, record)` and `context.append(form, text,
// record)`; where the context has only one of them, the other side is plain. The context of reading
// also holds `unknown`, which collects the keys that no list has.
//
// Fields are read in the order of the list, whatever the order of the file: what comes later may
// refer to what came before.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "formats/json.h"

namespace placewright {

enum class Presence { required, stated, optional };

// How a list stands in the text: in one line, or a line for each element and the bracket behind the
// last one or below it.
enum class Lines { one, bracket_behind, bracket_below };

struct PlainForm {};

// The member of a field that the record does not hold: its form computes it when writing and may
// look at it when reading; without a form it is only a key that is known.
struct Computed {
  constexpr bool operator()(const auto& /*record*/) const { return true; }
};

template <class Member, class Form>
struct Field {
  std::string_view key;
  Member member;  // or anything else that leads from the record to the value
  Form form;
  Presence presence;
  bool starts_line = false;
  Lines lines = Lines::one;
  bool null_is_absent = false;
  std::string_view if_missing = {};   // what it means that a required field is missing
  bool zero_counts = false;           // of an int: 0 is a value too
  std::string_view description = {};  // for the schema (json_schema.h)
  std::string_view law = {};          // keys of a schema that the type alone does not give

  [[nodiscard]] constexpr Field or_null() const {
    Field field = *this;
    field.null_is_absent = true;
    return field;
  }
  [[nodiscard]] constexpr Field or_zero() const {
    Field field = *this;
    field.zero_counts = true;
    return field;
  }
  [[nodiscard]] constexpr Field on_line() const {
    Field field = *this;
    field.starts_line = true;
    return field;
  }
  [[nodiscard]] constexpr Field in(Lines layout) const {
    Field field = *this;
    field.lines = layout;
    return field;
  }
  [[nodiscard]] constexpr Field says(std::string_view text) const {
    Field field = *this;
    field.description = text;
    return field;
  }
  [[nodiscard]] constexpr Field where(std::string_view schema) const {
    Field field = *this;
    field.law = schema;
    return field;
  }
  [[nodiscard]] constexpr Field positive() const { return where(R"({"exclusiveMinimum": 0})"); }
  [[nodiscard]] constexpr Field not_empty() const { return where(R"({"minLength": 1})"); }
  [[nodiscard]] constexpr Field or_fail(std::string_view meaning) const {
    Field field = *this;
    field.if_missing = meaning;
    return field;
  }
};

template <class Member, class Form = PlainForm>
constexpr Field<Member, Form> required(std::string_view key, Member member, Form form = {}) {
  return {key, member, form, Presence::required};
}
template <class Member, class Form = PlainForm>
constexpr Field<Member, Form> stated(std::string_view key, Member member, Form form = {}) {
  return {key, member, form, Presence::stated};
}
template <class Member, class Form = PlainForm>
constexpr Field<Member, Form> optional(std::string_view key, Member member, Form form = {}) {
  return {key, member, form, Presence::optional};
}

// Specialised for each record.
template <class Record>
inline constexpr std::tuple<> kFields{};

// What a record's fields must keep together, as keys of a schema; specialised where there is
// something.
template <class Record>
inline constexpr std::string_view kLaw{};

// The least that a context is.
struct ReadingContext {
  UnknownKeys unknown;
};
struct WritingContext {};

template <class... Lists>
constexpr auto keys_of(const Lists&... lists) {
  return std::apply([](const auto&... field) { return std::array{field.key...}; },
                    std::tuple_cat(lists...));
}

template <class Value, class Context>
void read_value(JsonValue json, Value& value, Context& context);

// What the object states of these fields; the rest of the record stays as it is.
template <class Record, class... Fields, class Context>
void read_fields(JsonValue object, Record& record, const std::tuple<Fields...>& fields,
                 Context& context) {
  const auto read = [&]<class Member, class Form>(const Field<Member, Form>& field) {
    std::optional<JsonValue> json = object.find(field.key);
    if (!json && !field.if_missing.empty()) object.fail(std::string(field.if_missing));
    if (!json && field.presence == Presence::required) json = object.at(field.key);  // throws
    if (!json || (field.null_is_absent && json->is_null())) return;
    if constexpr (std::is_same_v<Member, int Record::*>) {
      if (field.zero_counts) {
        std::invoke(field.member, record) =
            static_cast<int>(json->integer(0, std::numeric_limits<int>::max()));
        return;
      }
    }
    if constexpr (requires { context.read(field.form, *json, record); }) {
      context.read(field.form, *json, record);
    } else if constexpr (!std::is_same_v<Member, Computed>) {
      read_value(*json, std::invoke(field.member, record), context);
    }
  };
  std::apply([&](const Fields&... field) { (read(field), ...); }, fields);
}

template <class Record, class Context>
void read_record(JsonValue object, Record& record, Context& context) {
  static constexpr auto kKeys = keys_of(kFields<Record>);
  context.unknown.check(object, kKeys);
  read_fields(object, record, kFields<Record>, context);
}

template <class Value, class Context>
void read_value(JsonValue json, std::optional<Value>& value, Context& context) {
  read_value(json, value.emplace(), context);
}

template <class Value, class Context>
void read_value(JsonValue json, std::vector<Value>& values, Context& context) {
  values.clear();
  values.reserve(json.elements().size());
  for (const JsonValue element : json.elements()) {
    read_value(element, values.emplace_back(), context);
  }
}

template <class Value, class Context>
void read_value(JsonValue json, std::map<std::string, Value>& values, Context& context) {
  for (const auto& [key, value] : json.members()) {
    read_value(value, values[std::string(key)], context);
  }
}

template <class Value, class Context>
void read_value(JsonValue json, Value& value, Context& context) {
  if constexpr (requires { context.read(json, value); }) {
    context.read(json, value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = json.text();
  } else if constexpr (std::is_same_v<Value, double>) {
    value = json.amount();
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = json.flag();
  } else if constexpr (std::is_same_v<Value, int>) {
    value = static_cast<int>(json.integer(1, std::numeric_limits<int>::max()));
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    value = json.natural();
  } else if constexpr (Spelled<Value>) {
    value = json.one_of<Value>();
  } else {
    read_record(json, value, context);
  }
}

template <class Value, class Context>
void append_value(std::string& text, const Value& value, const Context& context,
                  Lines lines = Lines::one);

// Whether an optional field may be left out. Lists are usually empty, and what may be absent is.
template <class Value>
bool is_usual(const Value& value, const Value& usual) {
  return value == usual;
}
template <class Value>
bool is_usual(const std::optional<Value>& value, const std::optional<Value>& /*usual*/) {
  return !value;
}
template <class Value>
bool is_usual(const std::vector<Value>& values, const std::vector<Value>& /*usual*/) {
  return values.empty();
}

enum class Written { unusual, all };

// The fields of an object whose brace is open, behind what is already in it.
template <class Record, class... Fields, class Context>
void append_fields(std::string& text, const Record& record, const std::tuple<Fields...>& fields,
                   const Context& context, Written which = Written::unusual) {
  static const Record usual{};
  const auto append = [&]<class Member, class Form>(const Field<Member, Form>& field) {
    const auto& value = std::invoke(field.member, record);
    const bool may_be_left_out = field.presence == Presence::optional && which == Written::unusual;
    if (may_be_left_out && is_usual(value, std::invoke(field.member, usual))) return;
    if (text.back() != '{') text += field.starts_line ? ",\n" : ", ";
    text += '"';
    text += field.key;
    text += "\": ";
    if constexpr (requires { context.append(field.form, text, record); }) {
      context.append(field.form, text, record);
    } else {
      append_value(text, value, context, field.lines);
    }
  };
  std::apply([&](const Fields&... field) { (append(field), ...); }, fields);
}

template <class Record, class Context>
void append_record(std::string& text, const Record& record, const Context& context,
                   Written which = Written::unusual) {
  text += '{';
  append_fields(text, record, kFields<Record>, context, which);
  text += '}';
}

template <class Value, class Context>
void append_value(std::string& text, const std::optional<Value>& value, const Context& context,
                  Lines lines = Lines::one) {
  if (value) {
    append_value(text, *value, context, lines);
  } else {
    text += "null";
  }
}

template <class Value, class Context>
void append_value(std::string& text, const std::vector<Value>& values, const Context& context,
                  Lines lines = Lines::one) {
  const bool in_rows = lines != Lines::one;
  std::string_view before = in_rows ? "\n" : "";
  text += '[';
  for (const Value& value : values) {
    text += before;
    append_value(text, value, context);
    before = in_rows ? ",\n" : ", ";
  }
  text += lines == Lines::bracket_below ? "\n]" : "]";
}

template <class Value, class Context>
void append_value(std::string& text, const std::map<std::string, Value>& values,
                  const Context& context, Lines /*lines*/ = Lines::one) {
  std::string_view before = "{";
  for (const auto& [key, value] : values) {
    text += before;
    append_quoted(text, key);
    text += ": ";
    append_value(text, value, context);
    before = ", ";
  }
  text += values.empty() ? "{}" : "}";
}

template <class Value, class Context>
void append_value(std::string& text, const Value& value, const Context& context, Lines /*lines*/) {
  if constexpr (requires { context.append(text, value); }) {
    context.append(text, value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    append_quoted(text, value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<Value>) {
    append_number(text, value);
  } else if constexpr (std::is_integral_v<Value>) {
    text += std::to_string(value);
  } else if constexpr (Spelled<Value>) {
    append_quoted(text, name_of(value));
  } else {
    append_record(text, value, context);
  }
}

}  // namespace placewright
