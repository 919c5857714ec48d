#include "machine/targets.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

namespace placewright {
namespace {

int core_number(std::string_view text, std::string_view whole) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0 ||
      number >= CPU_SETSIZE) {
    throw std::invalid_argument(
        fmt::format("'{}' is not a set of cores: expected cpu:0, cpu:0-3 or cpu:0,2", whole));
  }
  return number;
}

// "Key:   value kB" lines of /proc files.
std::string proc_field(const char* file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string{} : line.substr(begin);
  }
  return {};
}

double memory_field(std::string_view key) {
  return std::strtod(proc_field("/proc/meminfo", key).c_str(), nullptr) * 1024;
}

std::string name_of_cores(const std::vector<int>& cores) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t j = i;
    while (j + 1 < cores.size() && cores[j + 1] == cores[j] + 1) ++j;
    ranges.push_back(i == j ? fmt::format("{}", cores[i])
                            : fmt::format("{}-{}", cores[i], cores[j]));
    i = j + 1;
  }
  return fmt::format("{}{}", kCoresPrefix, fmt::join(ranges, ","));
}

}  // namespace

bool share_a_core(const Target& a, const Target& b) {
  return std::ranges::any_of(a.cores,
                             [&](int core) { return std::ranges::binary_search(b.cores, core); });
}

std::optional<Target> joined(const std::vector<Target>& targets) {
  if (targets.size() < 2) return std::nullopt;
  Target all = targets.front();
  all.cores.clear();
  for (const Target& target : targets) {
    Target same = target;
    same.cores = targets.front().cores;
    if (same != targets.front() || target.cores.size() != same.cores.size()) return std::nullopt;
    all.cores.insert(all.cores.end(), target.cores.begin(), target.cores.end());
  }
  std::ranges::sort(all.cores);
  const bool apart = std::ranges::adjacent_find(all.cores) == all.cores.end();
  return apart && !all.cores.empty() ? std::optional(std::move(all)) : std::nullopt;
}

std::vector<int> cores_named(std::string_view name) {
  std::vector<int> cores;
  std::string_view rest = name.substr(kCoresPrefix.size());
  while (true) {
    const std::string_view range = rest.substr(0, rest.find(','));
    const auto dash = range.find('-');
    const int first = core_number(range.substr(0, dash), name);
    const int last =
        dash == std::string_view::npos ? first : core_number(range.substr(dash + 1), name);
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (range.size() == rest.size()) break;
    rest.remove_prefix(range.size() + 1);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.empty()) throw std::invalid_argument(fmt::format("'{}' names no core", name));
  return cores;
}

std::string name_of(const Target& target) {
  if (target.cores.empty()) return target.device;
  return name_of_cores(target.cores) + std::string(target.pinned ? kPinnedEnding : "");
}

std::string kind_of(const Target& target) {
  if (target.cores.empty()) return target.device;
  return fmt::format("cpu-{}{}", target.cores.size(), target.pinned ? "-pinned" : "");
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  // Of the process, not of the calling thread, which may be bound already.
  if (sched_getaffinity(getpid(), sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

std::vector<std::vector<int>> nested_core_sets(const std::vector<int>& cores) {
  std::vector<std::vector<int>> sets;
  for (std::size_t width = 1; width < cores.size(); width *= 2) {
    for (auto first = cores.begin(); cores.end() - first >= static_cast<std::ptrdiff_t>(width);
         first += static_cast<std::ptrdiff_t>(width)) {
      sets.emplace_back(first, first + static_cast<std::ptrdiff_t>(width));
    }
  }
  if (!cores.empty()) sets.push_back(cores);
  return sets;
}

std::optional<std::string> obstacle(const std::vector<int>& cores) {
  const std::vector<int> allowed = allowed_cores();
  for (const int core : cores) {
    if (std::binary_search(allowed.begin(), allowed.end(), core)) continue;
    return fmt::format("'{}' needs core {}, but this process may use only: {}",
                       name_of_cores(cores), core, fmt::join(allowed, ", "));
  }
  return std::nullopt;
}

std::string processor_name() {
  const std::string name = proc_field("/proc/cpuinfo", "model name");
  return name.empty() ? "processor" : name;
}

double total_memory() {
  return memory_field("MemTotal");
}
double available_memory() {
  return memory_field("MemAvailable");
}

void bind_this_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    throw std::runtime_error(
        fmt::format("cannot bind a thread to {}: {}", name_of_cores(cores), std::strerror(errno)));
  }
}

}  // namespace placewright
