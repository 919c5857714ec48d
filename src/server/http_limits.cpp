#include "server/http_limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/fronts.h"

namespace placewright::server {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kPatience{5};         // with a client that is silent
constexpr double kSlowest = 100e3;      // bytes a second that it must keep up with from then on
constexpr std::size_t kHeader = 65536;  // bytes

// One connection, which never blocks for longer than the client's pace allows.
class Connection final : public httplib::Stream {
 public:
  // `tls`: null without it. `largest`: bytes of a request.
  Connection(socket_t socket, SSL* tls, std::size_t largest)
      : socket_(socket), tls_(tls), largest_(largest) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  }
  ~Connection() override {
    if (tls_ != nullptr && !broken_) SSL_shutdown(tls_);
    if ((too_large_ || leaves_body_) && !broken_) linger();
    ::shutdown(socket_, SHUT_RDWR);
    ::close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What the client still sends is nobody's.
  void leave_body() { leaves_body_ = true; }
  bool greet() {
    if (tls_ == nullptr) return true;
    SSL_set_fd(tls_, socket_);
    SSL_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return moved(POLLIN, [&] { return SSL_accept(tls_); }) > 0;
  }
  // Waits for a request while `open` says so; false: the client is done.
  template <class Open>
  bool next_request(const Open& open) {
    constexpr int kSlice = 100;  // milliseconds
    const auto until = Clock::now() + kPatience;
    while (!broken_ && !too_large_ && open() && Clock::now() < until) {
      if (is_readable() || polled(POLLIN, kSlice)) {
        start(POLLIN);
        header_ = line_ = 0;
        in_header_ = true;
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool is_readable() const override {
    return begin_ < end_ || (tls_ != nullptr && SSL_pending(tls_) > 0) || polled(POLLIN, 0);
  }
  [[nodiscard]] bool is_writable() const override { return polled(POLLOUT, 0); }

  ssize_t read(char* to, std::size_t size) override {
    if (too_large_) return -1;
    if (begin_ == end_) {
      const ssize_t count = moved(POLLIN, [&] { return receive(); });
      if (count <= 0) return count;
      begin_ = 0;
      end_ = static_cast<std::size_t>(count);
    }
    const std::size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    too_large_ = !accepted({to, count});
    if (too_large_) return -1;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    return size == 0 ? 0 : moved(POLLOUT, [&] { return send(from, size); });
  }

  void get_remote_ip_and_port(std::string& /*address*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*address*/, int& /*port*/) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  ssize_t receive() {
    if (tls_ != nullptr) return SSL_read(tls_, buffer_.data(), static_cast<int>(buffer_.size()));
    return ::recv(socket_, buffer_.data(), buffer_.size(), 0);
  }
  ssize_t send(const char* from, std::size_t size) {
    constexpr std::size_t kMost = 1 << 20;
    size = std::min(size, kMost);
    if (tls_ != nullptr) return SSL_write(tls_, from, static_cast<int>(size));
    return ::send(socket_, from, size, MSG_NOSIGNAL);
  }
  // Headers and body, chunks with their lengths, within what a request may have.
  bool accepted(std::string_view bytes) {
    for (const char letter : bytes) {
      if (!in_header_) break;
      ++header_;
      if (letter == '\n') {
        in_header_ = std::exchange(line_, 0) > 0;
      } else if (letter != '\r') {
        ++line_;
      }
    }
    return header_ <= kHeader && bytes_ <= 2 * largest_ + 2 * kHeader;
  }

  // A client that still sends would lose the answer if the connection were closed at once.
  void linger() {
    constexpr int kPause = 1000;  // milliseconds
    ::shutdown(socket_, SHUT_WR);
    const auto until = Clock::now() + kPatience;
    while (Clock::now() < until && polled(POLLIN, kPause)) {
      if (::recv(socket_, buffer_.data(), buffer_.size(), 0) <= 0) return;
    }
  }

  // What it takes for one direction is counted from its first byte.
  void start(short direction) {
    direction_ = direction;
    since_ = Clock::now();
    bytes_ = 0;
  }
  // Repeats the transfer until it moves something, or the client is too slow or gone.
  template <class Transfer>
  ssize_t moved(short direction, const Transfer& transfer) {
    if (broken_) return -1;
    if (direction != direction_) start(direction);
    while (true) {
      errno = 0;
      if (tls_ != nullptr) ERR_clear_error();
      const ssize_t count = transfer();
      if (count > 0) {
        bytes_ += static_cast<std::size_t>(count);
        return count;
      }
      const short events = awaited(count);
      if (events == 0) return count == 0 && tls_ == nullptr ? 0 : fail();
      const Seconds left =
          since_ + kPatience + Seconds(static_cast<double>(bytes_) / kSlowest) - Clock::now();
      if (left.count() <= 0) return fail();
      if (!polled(events, 1 + static_cast<int>(left.count() * 1000))) return fail();
    }
  }
  // What the transfer waits for; 0: nothing, it has failed.
  [[nodiscard]] short awaited(ssize_t count) const {
    if (tls_ != nullptr) {
      const int error = SSL_get_error(tls_, static_cast<int>(count));
      if (error == SSL_ERROR_WANT_READ) return POLLIN;
      return error == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
    }
    const bool later = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    return later ? direction_ : 0;
  }
  ssize_t fail() {
    broken_ = true;
    return -1;
  }
  [[nodiscard]] bool polled(short events, int milliseconds) const {
    pollfd asked{.fd = socket_, .events = events, .revents = 0};
    return poll(&asked, 1, milliseconds) > 0;
  }

  socket_t socket_;
  SSL* tls_;
  std::size_t largest_;
  bool broken_ = false;
  bool too_large_ = false;  // the request; it can be answered yet
  bool leaves_body_ = false;
  short direction_ = 0;
  Clock::time_point since_;
  std::size_t bytes_ = 0;  // that moved in this direction since then
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0;  // of what the buffer holds
  std::size_t end_ = 0;
  bool in_header_ = true;
  std::size_t header_ = 0;  // bytes
  std::size_t line_ = 0;
};

// Whether the library may lose where the next request begins.
bool is_ambiguous(const httplib::Request& request) {
  const std::size_t lengths = request.get_header_value_count("Content-Length");
  const bool chunked = request.has_header("Transfer-Encoding");
  const bool reads =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  return lengths + (chunked ? 1 : 0) > (reads ? 1U : 0U);
}

thread_local socket_t served_socket = INVALID_SOCKET;

template <class Base>
class LimitedServer final : public Base {
 public:
  template <class... Arguments>
  explicit LimitedServer(const ServerSettings& settings, Arguments... arguments)
      : Base(arguments...), settings_(settings) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    std::unique_ptr<SSL, decltype(&SSL_free)> tls(nullptr, &SSL_free);
    if constexpr (std::is_same_v<Base, httplib::SSLServer>) {
      tls.reset(SSL_new(this->ssl_context()));
    }
    Connection connection(socket, tls.get(), static_cast<std::size_t>(settings_.largest_body));
    served_socket = socket;
    if (!connection.greet()) return false;
    const auto open = [this] { return this->svr_sock_ != INVALID_SOCKET; };
    bool last = false;
    while (!last && connection.next_request(open)) {
      const auto look = [&](httplib::Request& request) {
        request.ssl = tls.get();
        // The body of a stranger is not read, so there is no next request.
        const bool stranger = !may_enter(request, settings_);
        if (stranger) connection.leave_body();
        if (!stranger && !is_ambiguous(request)) return;
        request.headers.erase("Connection");
        request.set_header("Connection", "close");
        last = true;
      };
      bool closed = false;
      if (!this->process_request(connection, false, closed, look) || closed) break;
    }
    return true;
  }

  const ServerSettings& settings_;
};

}  // namespace

bool may_enter(const httplib::Request& request, const ServerSettings& settings) {
  const bool open = settings.token.empty() ||
                    (request.method == "GET" && request.path.starts_with("/v2/health/"));
  return open || same_token(request.get_header_value("Authorization"), "Bearer " + settings.token);
}

bool client_has_left() {
  pollfd asked{.fd = served_socket, .events = POLLRDHUP, .revents = 0};
  return poll(&asked, 1, 0) > 0;
}

std::unique_ptr<httplib::Server> limited_http_server(const ServerSettings& settings) {
  if (settings.certificate.empty()) {
    return std::make_unique<LimitedServer<httplib::Server>>(settings);
  }
  auto server = std::make_unique<LimitedServer<httplib::SSLServer>>(
      settings, settings.certificate.c_str(), settings.key.c_str(),
      settings.client_authority.empty() ? nullptr : settings.client_authority.c_str());
  if (!server->is_valid()) throw std::runtime_error("the certificate and the key cannot be used");
  return server;
}

}  // namespace placewright::server
