// The HTTP library's servers, with limits that it does not know: a client that sends or reads drop
// by drop, or a request without end, loses its connection, and so holds no worker and no memory.

#pragma once

#include <memory>

#include <httplib.h>

#include "serving/server_settings.h"

namespace placewright::server {

// With TLS where the settings name a certificate. Throws std::runtime_error if it cannot be used.
std::unique_ptr<httplib::Server> limited_http_server(const ServerSettings& settings);

// Whether the client whose request this thread serves has closed its side.
bool client_has_left();

// Whether the request has the token, or needs none.
bool may_enter(const httplib::Request& request, const ServerSettings& settings);

}  // namespace placewright::server
