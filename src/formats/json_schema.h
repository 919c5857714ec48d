// JSON Schemas of our own files, made from the lists of fields that read and write them
// (json_fields.h): a schema knows the keys and types that the reader knows; all objects are closed.
// Forms of a field and types that only a context can read have their schema from a context too:
// `context.schema(form)` and `context.schema(Identity<KindId>{})` come before what is here.
// What no type tells (a list that is not empty, a key that needs another) stands in the lists as
// `where` and `kLaw`.

#pragma once

#include <string>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "formats/json_fields.h"
#include "problem/ids.h"
#include "problem/objective.h"
#include "problem/plan.h"

namespace placewright {

using Schema = nlohmann::ordered_json;

// {"$ref": "common.json#/$defs/NAME"}: what schemas of files share with those of what verbs print.
Schema common_schema(std::string_view name);
// The same, and null.
Schema or_null(Schema schema);
// With these keys too; both may be empty.
Schema described(Schema schema, std::string_view description, std::string_view law);
// The schema of a file as it begins: what it says that it is, and its version.
Schema begun_schema(std::string_view name, std::string_view title, std::string_view kind,
                    int newest = 1);

template <class Value>
struct Identity {
};  // std::type_identity, but that no argument-dependent look-up leaves placewright

template <class Value>
struct ElementOf {
  using Type = void;
};
template <class Value>
struct ElementOf<std::optional<Value>> {
  using Type = Value;
};
template <class Value>
struct ElementOf<std::vector<Value>> {
  using Type = Value;
};
template <class Value>
struct ElementOf<std::map<std::string, Value>> {
  using Type = Value;
};

template <class Value, class Context>
Schema schema_of(const Context& context);

// The fields of an object in its properties; those that a file must have are required.
template <class Record, class... Fields, class Context>
void add_fields(Schema& object, const std::tuple<Fields...>& fields, const Context& context) {
  const auto add = [&]<class Member, class Form>(const Field<Member, Form>& field) {
    Schema value = Schema::object();
    if constexpr (requires { context.schema(field.form); }) {
      value = context.schema(field.form);
    } else if constexpr (!std::is_same_v<Member, Computed>) {
      value = schema_of<std::remove_cvref_t<std::invoke_result_t<Member, Record&>>>(context);
    }
    if (field.zero_counts) value["minimum"] = 0;
    if (field.null_is_absent) value = or_null(std::move(value));
    object["properties"][std::string(field.key)] =
        described(std::move(value), field.description, field.law);
    if (field.presence == Presence::required) object["required"].push_back(field.key);
  };
  std::apply([&](const Fields&... field) { (add(field), ...); }, fields);
}

template <class Record, class Context>
Schema record_schema(const Context& context) {
  Schema object = {{"type", "object"}};
  add_fields<Record>(object, kFields<Record>, context);
  object["additionalProperties"] = false;
  return described(std::move(object), "", kLaw<Record>);
}

template <class Value>
Schema names_schema() {
  Schema names = Schema::array();
  for (const Value value : values_of<Value>()) names.push_back(name_of(value));
  return {{"enum", std::move(names)}};
}

template <class Value, class Context>
Schema schema_of(const Context& context) {
  using Element = typename ElementOf<Value>::Type;
  if constexpr (requires { context.schema(Identity<Value>{}); }) {
    return context.schema(Identity<Value>{});
  } else if constexpr (std::is_same_v<Value, std::optional<Element>>) {
    return schema_of<Element>(context);
  } else if constexpr (std::is_same_v<Value, std::vector<Element>>) {
    return {{"type", "array"}, {"items", schema_of<Element>(context)}};
  } else if constexpr (std::is_same_v<Value, std::map<std::string, Element>>) {
    return {{"type", "object"}, {"additionalProperties", schema_of<Element>(context)}};
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_same_v<Value, double>) {
    return common_schema("amount");
  } else if constexpr (std::is_same_v<Value, bool>) {
    return common_schema("flag");
  } else if constexpr (std::is_same_v<Value, int>) {
    return {{"type", "integer"}, {"minimum", 1}, {"maximum", std::numeric_limits<int>::max()}};
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    return {{"type", "integer"},
            {"minimum", 0},
            {"maximum", std::numeric_limits<std::uint64_t>::max()}};
  } else if constexpr (std::is_same_v<Value, Objective>) {
    return common_schema("objective");
  } else if constexpr (std::is_same_v<Value, TimeUnit>) {
    return common_schema("unit");
  } else if constexpr (std::is_same_v<Value, Status>) {
    return common_schema("status");
  } else if constexpr (Spelled<Value>) {
    return names_schema<Value>();
  } else {
    return record_schema<Value>(context);
  }
}

// What is called by a name in every file.
struct NameSchemas {
  [[nodiscard]] static Schema name() { return common_schema("name"); }

  Schema schema(Identity<KindId> /*type*/) const { return name(); }
  Schema schema(Identity<DeviceId> /*type*/) const { return name(); }
  Schema schema(Identity<ResourceId> /*type*/) const { return name(); }
  Schema schema(Identity<SpaceId> /*type*/) const { return name(); }
  Schema schema(Identity<TensorId> /*type*/) const { return common_schema("reference"); }
};

}  // namespace placewright
