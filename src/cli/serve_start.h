// `placewright serve` without a simulation: checks what is asked, and becomes the server
// (src/server/).

#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/device_options.h"
#include "cli/exit_code.h"
#include "cli/serve_options.h"
#include "serving/server_settings.h"

namespace placewright::cli {

struct ServeStartOptions {
  std::string folder;
  ModelOptions model;
  std::string http = "127.0.0.1:8000";
  std::string grpc = "127.0.0.1:8001";
  std::string token_file;
  std::string certificate;
  std::string key;
  std::string client_authority;
  bool insecure = false;
  double largest_body = 64;  // MB
  int connections = 64;
  double memory = 0;  // MB; 0: any
  LogForm log = LogForm::text;

  void add_to(CLI::App& verb);
};

// What --objective, --priority, --weight and --queue say of each model.
std::vector<ClassSetting> classes_of(const ServiceOptions& service);

// Throws UsageError or InputError unless these are files of models with different names.
void require_models(const std::vector<std::string>& models, const std::string& folder);

// Does not return where the server starts.
ExitCode start_serving(const std::vector<std::string>& models, const ServiceOptions& service,
                       const ServeStartOptions& options);

}  // namespace placewright::cli
