#include "formats/text_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

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
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
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

// File systems without such a call say EINVAL.
bool synchronized(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL;
}

// The file is whole whatever comes of it; the name may be the old one after a loss of power.
void synchronize_folder_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  const Descriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() >= 0) (void)synchronized(opened.number());
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
  // On disk before it takes the name: else a loss of power may leave the name and no bytes.
  if (!write_all(file.number(), text) || !synchronized(file.number()) || !file.close() ||
      ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw OutputError(path, fmt::format("cannot be written: {}", reason_of(error)));
  }
  synchronize_folder_of(target);
}

// FIPS 180-4, section 6.2, of bytes that come in pieces.
class Sha256 {
 public:
  void add(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), block_.size() - filled_);
      std::memcpy(block_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes.remove_prefix(count);
      if (filled_ < block_.size()) return;
      add_block(block_.data());
      filled_ = 0;
    }
  }

  // As hexadecimal digits. Nothing can be added after it.
  [[nodiscard]] std::string finish() {
    const std::uint64_t bits = std::uint64_t{length_} * 8;
    std::string padding(1, '\x80');
    while ((length_ + padding.size()) % 64 != 56) padding += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) padding += static_cast<char>(bits >> shift);
    add(padding);
    std::string text;
    for (const std::uint32_t word : state_) text += fmt::format("{:08x}", word);
    return text;
  }

 private:
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
  std::array<unsigned char, 64> block_{};
  std::size_t filled_ = 0;  // bytes of block_
  std::size_t length_ = 0;  // of everything so far
};

// "a pipe", …; empty for a regular file.
std::string_view special_kind(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

// For reading. Asks what the path is before it opens it, since opening a pipe waits for its writer.
// Throws InputError.
Descriptor opened(const std::string& path, bool pipe_will_do) {
  const std::string name = input_name(path);
  if (path == "-") return Descriptor(STDIN_FILENO);
  struct stat about {};
  const bool known = ::stat(path.c_str(), &about) == 0;
  const bool pipe = known && pipe_will_do && S_ISFIFO(about.st_mode);
  if (known && !pipe && !S_ISREG(about.st_mode) && !S_ISCHR(about.st_mode)) {
    throw InputError(name, "", fmt::format("is {}, expected a file", special_kind(about.st_mode)));
  }
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (number < 0) {
    throw InputError(name, "", fmt::format("cannot be read: {}", reason_of(errno)));
  }
  Descriptor file(number);
  // Of devices only a terminal ends, when its user says so.
  if (known && S_ISCHR(about.st_mode) && !(pipe_will_do && ::isatty(number) == 1)) {
    throw InputError(name, "", "is a device, expected a file");
  }
  return file;
}

// Hands what the descriptor gives to `take`, in pieces. Throws InputError.
void read_pieces(const Descriptor& file, const std::string& name,
                 const std::function<void(std::string_view)>& take) {
  // Not cleared: most files are a small part of it.
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  for (;;) {
    const ssize_t count = ::read(file.number(), piece.get(), kPiece);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw InputError(name, "", fmt::format("cannot be read: {}", reason_of(errno)));
    }
    if (count == 0) return;
    take(std::string_view(piece.get(), static_cast<std::size_t>(count)));
  }
}

// Texts of peek_whole that the next read_whole takes, by path.
class KeptTexts {
 public:
  void keep(const std::string& path, std::string text) {
    const std::lock_guard lock(mutex_);
    texts_[path] = std::move(text);
  }
  std::optional<std::string> take(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto node = texts_.extract(path);
    return node ? std::optional(std::move(node.mapped())) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

KeptTexts& kept_texts() {
  static KeptTexts texts;
  return texts;
}

// Relative to the folder, in alphabetical order.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError(folder, "", fmt::format("cannot be read: {}", error.code().message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

std::string peek_whole(const std::string& path) {
  std::string text = read_whole(path);
  if (path == "-" || !fs::is_regular_file(path)) kept_texts().keep(path, text);
  return text;
}

std::string read_whole(const std::string& path, std::size_t limit) {
  if (std::optional<std::string> kept = kept_texts().take(path)) return *std::move(kept);
  const std::string name = input_name(path);
  const Descriptor file = opened(path, true);
  struct stat about {};
  if (::fstat(file.number(), &about) == 0 && S_ISDIR(about.st_mode)) {
    throw InputError(name, "", "is a directory, expected a file");  // as standard input
  }
  const auto require_at_most_limit = [&](std::size_t length) {
    if (length <= limit) return;
    throw InputError(name, "",
                     fmt::format("is larger than {} bytes, the most that is read", limit));
  };
  const auto stated = static_cast<std::size_t>(about.st_size > 0 ? about.st_size : 0);
  require_at_most_limit(stated);
  std::string text;
  text.reserve(stated);
  read_pieces(file, name, [&](std::string_view piece) {
    text += piece;
    require_at_most_limit(text.size());
  });
  return text;
}

void require_that_it_ends(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return;
  const std::string_view kind = special_kind(about.st_mode);
  if (kind.empty() || S_ISDIR(about.st_mode)) return;
  throw InputError(path, "", fmt::format("is {}, expected a file", kind));
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
  sum.add(bytes);
  return sum.finish();
}

std::string digest_of_file(const std::string& path) {
  Sha256 sum;
  if (fs::is_directory(path)) {
    for (const std::string& name : files_in(path)) {
      sum.add(fmt::format("{}\n{}\n", name, digest_of_file((fs::path(path) / name).string())));
    }
    return sum.finish();
  }
  const Descriptor file = opened(path, false);
  read_pieces(file, input_name(path), [&](std::string_view piece) { sum.add(piece); });
  return sum.finish();
}

}  // namespace placewright
