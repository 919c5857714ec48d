#include "plugins/shared_object.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

namespace placewright {
namespace {

namespace fs = std::filesystem;

template <class Record>
bool read_at(std::ifstream& file, std::uint64_t place, Record& record) {
  if (place > static_cast<std::uint64_t>(std::numeric_limits<std::streamoff>::max())) return false;
  file.seekg(static_cast<std::streamoff>(place));
  file.read(reinterpret_cast<char*>(&record), sizeof(Record));
  return file.good();
}

// The least size of a file with this header: its tables, and what is to be loaded. 0 if it ends
// before that can be told.
std::uint64_t stated_size(std::ifstream& file, const Elf64_Ehdr& header) {
  std::uint64_t size =
      header.e_shoff + std::uint64_t{header.e_shentsize} * std::uint64_t{header.e_shnum};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!read_at(file, header.e_phoff + i * sizeof part, part)) return 0;
    size = std::max<std::uint64_t>(size, part.p_offset + part.p_filesz);
  }
  return size;
}

// Empty for a file that dlopen may look at.
std::string damage_of(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::is_regular_file(path, unreadable)) return "is not a file";
  const std::uint64_t size = fs::file_size(path, unreadable);
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (unreadable || !read_at(file, 0, header)) return "is too short for a shared object";
  if (std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG) {
    return "is not a shared object";
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return "is a shared object of another kind of machine";
  }
  const std::uint64_t stated = stated_size(file, header);
  if (stated == 0 || stated > size) return "is cut off: it ends before its header says so";
  return "";
}

}  // namespace

SharedObject open_shared_object(const fs::path& path, int mode) {
  if (path.has_parent_path()) {
    if (const std::string damage = damage_of(path); !damage.empty()) {
      return {nullptr, fmt::format("{} {}", path.string(), damage)};
    }
  }
  void* const handle = dlopen(path.c_str(), mode);
  return {handle, handle == nullptr ? dlerror() : ""};
}

}  // namespace placewright
