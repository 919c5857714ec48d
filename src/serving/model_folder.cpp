#include "serving/model_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "backends/model_files.h"
#include "backends/registry.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

// Whether the file, its links followed, lies in the folder.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return false;
  const fs::path root = fs::canonical(folder, failed);
  if (failed) return false;
  return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

std::string stamp_of(const fs::path& file) {
  std::error_code failed;
  const auto time = fs::last_write_time(file, failed).time_since_epoch().count();
  const auto size = fs::is_regular_file(file, failed) ? fs::file_size(file, failed) : 0;
  return fmt::format("{} {}", time, size);
}

void add_from_folder(const std::string& folder, std::vector<FoundModel>& all) {
  const auto add = [&](const std::string& name, const std::string& version, const fs::path& path) {
    if (backend_reading(path.string()) == nullptr) return;
    // A pipe would be read for ever.
    std::error_code failed;
    if (!fs::is_regular_file(path, failed) || !lies_in(path, folder)) return;
    all.push_back({name, version, path.string(), stamp_of(path)});
  };
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (!entry.is_directory(failed)) {
      add(model_name_of(entry.path().string()), "1", entry.path());
      continue;
    }
    for (const auto& version : fs::directory_iterator(entry.path(), failed)) {
      const std::string number = version.path().filename().string();
      if (!version.is_directory(failed) || !version_number(number)) continue;
      for (const auto& file : fs::directory_iterator(version.path(), failed)) {
        add(entry.path().filename().string(), number, file.path());
      }
    }
  }
}

}  // namespace

std::optional<long> version_number(const std::string& text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

std::vector<FoundModel> found_models(const std::vector<std::string>& files,
                                     const std::string& folder) {
  std::vector<FoundModel> all;
  for (const std::string& path : files) {
    all.push_back({model_name_of(path), "1", path, stamp_of(path)});
  }
  if (!folder.empty()) add_from_folder(folder, all);
  // The first of a name and version, or two files would replace each other for ever.
  std::ranges::sort(all.begin() + static_cast<std::ptrdiff_t>(files.size()), all.end(), {},
                    &FoundModel::path);
  std::set<std::pair<std::string, std::optional<long>>> seen;
  std::erase_if(all, [&](const FoundModel& each) {
    return !seen.emplace(each.name, version_number(each.version)).second;
  });
  return all;
}

}  // namespace placewright
