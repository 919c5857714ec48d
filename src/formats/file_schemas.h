// The JSON Schemas of our own files, as docs/schema has them.

#pragma once

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace placewright {

nlohmann::ordered_json problem_schema();
nlohmann::ordered_json cluster_schema();
nlohmann::ordered_json plan_schema();
nlohmann::ordered_json trace_schema();
nlohmann::ordered_json run_schema();

struct FileSchema {
  std::string_view name;  // of its file, without ".json"
  nlohmann::ordered_json (*make)();
};
inline constexpr std::array kFileSchemas{
    FileSchema{"problem", problem_schema}, FileSchema{"cluster", cluster_schema},
    FileSchema{"plan", plan_schema}, FileSchema{"trace", trace_schema},
    FileSchema{"run-output", run_schema}};

}  // namespace placewright
