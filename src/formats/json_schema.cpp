#include "formats/json_schema.h"

#include <fmt/format.h>

namespace placewright {

Schema common_schema(std::string_view name) {
  return {{"$ref", fmt::format("common.json#/$defs/{}", name)}};
}

Schema or_null(Schema schema) {
  if (schema == common_schema("amount")) return common_schema("amount_or_null");
  const auto type = schema.find("type");
  if (type == schema.end()) return {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
  if (type->is_string()) *type = Schema::array({*type});
  type->push_back("null");
  return schema;
}

Schema described(Schema schema, std::string_view description, std::string_view law) {
  if (!description.empty()) schema["description"] = description;
  if (!law.empty()) schema.update(Schema::parse(law));
  return schema;
}

Schema begun_schema(std::string_view name, std::string_view title, std::string_view kind,
                    int newest) {
  Schema versions = Schema::array();
  for (int version = 1; version <= newest; ++version) versions.push_back(version);
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"$id", fmt::format("https://placewright.dev/schema/{}.json", name)},
          {"title", title},
          {"$comment", "made from the lists of fields in src/formats by 'placewright schemas'"},
          {"type", "object"},
          {"properties",
           {{"placewright", {{"const", kind}}}, {"version", {{"enum", std::move(versions)}}}}},
          {"required", {"placewright", "version"}},
          {"additionalProperties", false}};
}

}  // namespace placewright
