// The two doors of the server: both speak the Open Inference Protocol and ask one ModelService.

#pragma once

#include <memory>
#include <string>

#include "serving/model_service.h"
#include "serving/server_settings.h"

namespace placewright::server {

class Front {
 public:
  virtual ~Front() = default;
  [[nodiscard]] virtual std::string address() const = 0;  // with the port that it has
  // Takes no connections any more, and waits for the answers on their way.
  virtual void close() = 0;
};

// Throw std::runtime_error with one sentence, such as for a port in use.
std::unique_ptr<Front> open_grpc(const ServerSettings& settings, ModelService& service);
std::unique_ptr<Front> open_http(const ServerSettings& settings, ModelService& service);

inline constexpr const char* kServerName = "placewright";

// Whether both are the same; the time that it takes says nothing about where they differ.
bool same_token(std::string_view given, std::string_view expected);

}  // namespace placewright::server
