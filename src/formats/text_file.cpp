#include "formats/text_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/input_error.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ > STDERR_FILENO) ::close(number_);
  }

  [[nodiscard]] int number() const { return number_; }
  // A full disk may show only now.
  [[nodiscard]] bool close() {
    const int number = number_;
    number_ = -1;
    return ::close(number) == 0;
  }

 private:
  int number_;
};

// False with errno set when not everything could be written.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void write_to_standard_output(std::string_view text) {
  // Through stdio, so that it comes after what the program has printed already.
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw OutputError("standard output", fmt::format("cannot be written: {}", reason_of(errno)));
  }
}

void write_in_place(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0 || !write_all(file.number(), text)) {
    throw OutputError(path, fmt::format("cannot be written: {}", reason_of(errno)));
  }
}

// A new file beside `target`, under a name that nobody has.
int open_beside(const fs::path& target, mode_t mode, std::string& temporary) {
  std::random_device random;
  for (int attempt = 0;; ++attempt) {
    const fs::path name = fmt::format(".{}.{:08x}.tmp", target.filename().string(), random());
    temporary = (target.parent_path() / name).string();
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST || attempt == 100) return file;
  }
}

// `kept_mode`: the permissions of the file that is replaced, if there is one.
void replace_file(const std::string& path, const fs::path& target, std::optional<mode_t> kept_mode,
                  std::string_view text) {
  std::string temporary;
  Descriptor file(open_beside(target, kept_mode.value_or(0666), temporary));
  if (file.number() < 0) {
    throw OutputError(path, fmt::format("cannot be written: {}", reason_of(errno)));
  }
  if (kept_mode) ::fchmod(file.number(), *kept_mode);
  if (!write_all(file.number(), text) || !file.close() ||
      ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw OutputError(path, fmt::format("cannot be written: {}", reason_of(error)));
  }
}

// FIPS 180-4, section 6.2.
class Sha256 {
 public:
  void add_block(const unsigned char* block) {
    std::array<std::uint32_t, 64> words;
    for (std::size_t i = 0; i < 16; ++i) {
      words[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
                 std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = words[i - 15];
      const std::uint32_t b = words[i - 2];
      words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
                 (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & f) ^ (~e & g)) + kConstants[i] + words[i];
      const std::uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::array<std::uint32_t, 8> sum{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += sum[i];
  }

  [[nodiscard]] const std::array<std::uint32_t, 8>& state() const { return state_; }

 private:
  static constexpr std::array<std::uint32_t, 64> kConstants{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

std::string read_whole(const std::string& path, std::size_t limit) {
  const std::string name = input_name(path);
  const bool standard_input = path == "-";
  const Descriptor file(standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) {
    throw InputError(name, "", fmt::format("cannot be read: {}", reason_of(errno)));
  }
  struct stat about {};
  if (::fstat(file.number(), &about) == 0 && S_ISDIR(about.st_mode)) {
    throw InputError(name, "", "is a directory, expected a file");
  }

  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::string text;
  std::size_t length = 0;
  const auto stated = static_cast<std::size_t>(about.st_size > 0 ? about.st_size : 0);
  if (stated <= limit) text.reserve(stated + kStep);
  for (;;) {
    text.resize(length + kStep);
    const ssize_t count = ::read(file.number(), text.data() + length, kStep);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw InputError(name, "", fmt::format("cannot be read: {}", reason_of(errno)));
    }
    length += static_cast<std::size_t>(count);
    if (length > limit || stated > limit) {
      throw InputError(name, "",
                       fmt::format("is larger than {} bytes, the most that is read", limit));
    }
    if (count == 0) break;
  }
  text.resize(length);
  return text;
}

void write_whole(const std::string& path, std::string_view text) {
  if (path == "-") return write_to_standard_output(text);
  std::error_code unresolved;
  fs::path target = fs::weakly_canonical(path, unresolved);  // a link's target is what changes
  if (unresolved) target = path;

  struct stat about {};
  std::optional<mode_t> mode;
  if (::stat(target.c_str(), &about) == 0) {
    if (S_ISDIR(about.st_mode)) throw OutputError(path, "is a directory, expected a file to write");
    if (!S_ISREG(about.st_mode)) return write_in_place(path, text);
    // A rename asks the folder only; a file that is protected against writing stays as it is.
    if (::access(target.c_str(), W_OK) != 0) {
      throw OutputError(path, fmt::format("cannot be written: {}", reason_of(errno)));
    }
    mode = about.st_mode & 0777;
  }
  replace_file(path, target, mode, text);
}

std::string digest_of(std::string_view bytes) {
  Sha256 sum;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t whole_blocks = bytes.size() / 64;
  for (std::size_t i = 0; i < whole_blocks; ++i) sum.add_block(data + 64 * i);

  std::array<unsigned char, 128> tail{};
  const std::size_t rest = bytes.size() % 64;
  if (rest > 0) std::memcpy(tail.data(), data + 64 * whole_blocks, rest);
  tail[rest] = 0x80;
  const std::size_t tail_size = rest < 56 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) {
    tail[tail_size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  }
  for (std::size_t at = 0; at < tail_size; at += 64) sum.add_block(tail.data() + at);

  std::string text;
  for (const std::uint32_t word : sum.state()) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace placewright
