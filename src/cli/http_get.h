// One document from a server on a machine nearby, over plain HTTP.

#pragma once

#include <string>

namespace placewright::cli {

// The body of what is at the path. `address` is "HOST:PORT"; `token` may be empty. Throws
// RuntimeError with one sentence: nobody listens, the server is silent for 5 s, or refuses.
std::string http_get(const std::string& address, const std::string& path, const std::string& token);

}  // namespace placewright::cli
