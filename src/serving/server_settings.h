// What `placewright serve` tells the server that it starts, as one JSON object.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/precision.h"
#include "serving/scheduler.h"

namespace placewright {

// How the server says what happens.
enum class LogForm { text, json };
template <>
inline constexpr auto kSpellings<LogForm> = std::to_array<Spelling<LogForm>>(
    {{LogForm::text, "text", "a sentence"}, {LogForm::json, "json", "an object in each line"}});

// Of one model, by its name; the empty name stands for all models.
struct ClassSetting {
  std::string model;
  std::optional<double> objective = {};  // milliseconds
  std::optional<double> priority = {};
  std::optional<double> weight = {};
  std::optional<double> queue = {};  // requests
};

struct ServerSettings {
  std::vector<std::string> models;  // files
  std::vector<std::string> shapes;  // of open inputs
  Precision precision = Precision::by_default;
  std::string folder;  // of models; empty: none
  std::string http;    // "HOST:PORT"; empty: not served
  std::string grpc;
  std::string token;        // what clients must send; empty: nothing
  std::string certificate;  // TLS: files; empty: none
  std::string key;
  std::string client_authority;  // certificates that clients must have; empty: none
  std::string cache;             // folder of kept measurements; empty: none
  ServingPolicy policy = ServingPolicy::normalised;
  Late late = Late::refuse;
  double ageing = 20;
  double share = 0.1;
  double largest_body = 64e6;  // bytes
  int connections = 64;        // HTTP
  double memory = 0;           // bytes that models may take together; 0: any
  LogForm log = LogForm::text;
  std::vector<ClassSetting> classes;
};

std::string settings_text(const ServerSettings& settings);
// Throws InputError.
ServerSettings parse_settings(std::string_view text);

// What a model of this name is entitled to.
ServiceClass class_of(const ServerSettings& settings, const std::string& model);

}  // namespace placewright
