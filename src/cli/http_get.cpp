#include "cli/http_get.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "backends/runtime.h"
#include "cli/exit_code.h"

namespace placewright::cli {
namespace {

constexpr std::size_t kLargest = 100'000'000;

class Socket {
 public:
  explicit Socket(int socket) : socket_(socket) {}
  ~Socket() {
    if (socket_ >= 0) close(socket_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int number() const { return socket_; }

 private:
  int socket_;
};

std::unique_ptr<Socket> connected(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError(fmt::format("expected HOST:PORT, found '{}'", address));
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &list) != 0) {
    throw RuntimeError(fmt::format("{}: there is no such address", address));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    auto made = std::make_unique<Socket>(
        socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    setsockopt(made->number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(made->number(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(made->number(), each->ai_addr, each->ai_addrlen) == 0) return made;
  }
  throw RuntimeError(fmt::format("{}: {}", address, std::strerror(errno)));
}

std::string exchanged(const std::string& address, const std::string& request) {
  const auto server = connected(address);
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t count =
        send(server->number(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) throw RuntimeError(fmt::format("{}: the server does not listen", address));
    sent += static_cast<std::size_t>(count);
  }
  std::string answer;
  char buffer[65536];
  while (answer.size() < kLargest) {
    const ssize_t count = recv(server->number(), buffer, sizeof(buffer), 0);
    if (count < 0) throw RuntimeError(fmt::format("{}: the server is silent", address));
    if (count == 0) break;
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  return answer;
}

}  // namespace

std::string http_get(const std::string& address, const std::string& path,
                     const std::string& token) {
  const std::string authorization =
      token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token);
  const std::string answer =
      exchanged(address, fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n",
                                     path, address, authorization));
  constexpr std::string_view kGood = "HTTP/1.1 200 ";
  const std::size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos || !answer.starts_with("HTTP/1.1 ")) {
    throw RuntimeError(fmt::format("{}: what answers there is no server of models", address));
  }
  if (!answer.starts_with(kGood)) {
    throw RuntimeError(fmt::format("{}{}: the server answers '{}'", address, path,
                                   answer.substr(9, answer.find("\r\n") - 9)));
  }
  return answer.substr(body + 4);
}

}  // namespace placewright::cli
