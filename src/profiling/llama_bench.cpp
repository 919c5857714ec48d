#include "profiling/llama_bench.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include "formats/json.h"
#include "formats/llama_arguments.h"
#include "formats/printable.h"
#include "machine/process.h"

namespace placewright {
namespace {

const LlamaProgram& bench_dialect() {
  return *std::ranges::find(llama_programs(), "llama-bench", &LlamaProgram::name);
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMost = 600;
  return printable(text.size() > kMost ? text.substr(text.size() - kMost) : text);
}

std::string output_of(const std::vector<std::string>& words) {
  ProcessResult result;
  try {
    result = run_process(words);
  } catch (const std::system_error& error) {
    throw LlamaError(fmt::format(
        "{} cannot be started ({}): build llama.cpp with 'scripts/setup llama', or name the folder "
        "of its programs with --tools",
        words.front(), error.code().message()));
  }
  if (result.exit_code != 0) {
    throw LlamaError(fmt::format("{} ended with {}: {}", fmt::join(words, " "), result.exit_code,
                                 last_lines(result.errors)));
  }
  return result.out;
}

// Probes by their number of layers, in a folder that goes with the object.
class Probes {
 public:
  explicit Probes(const GgufFile& file) : file_(file) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "placewright-probes-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw LlamaError(fmt::format("no folder can be made like {}", pattern));
    }
    folder_ = pattern;
  }
  ~Probes() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  const std::string& of(std::size_t layers) {
    const auto [entry, is_new] =
        paths_.try_emplace(layers, (folder_ / fmt::format("{}-layers.gguf", layers)).string());
    if (is_new) write_first_layers(file_, layers, entry->second);
    return entry->second;
  }

 private:
  const GgufFile& file_;
  std::filesystem::path folder_;
  std::map<std::size_t, std::string> paths_;
};

class HostMeasurement {
 public:
  HostMeasurement(const LlamaBench& bench, const GgufFile& file, const LayeredModel& model,
                  std::vector<ServingHost>& hosts)
      : bench_(bench), model_(model), hosts_(hosts), probes_(file) {}

  void measure_all() {
    for (std::size_t h = 0; h < hosts_.size(); ++h) measure_layers(h);
    for (std::size_t h = 0; h < hosts_.size(); ++h) measure_entry(h);
  }

 private:
  double time_of(const std::string& what, const LayerSplit& split) {
    std::size_t layers = 0;
    for (const HostShare& share : split) layers += share.layers;
    bench_.say(what);
    return token_time(bench_, llama_arguments(bench_dialect(), probes_.of(layers), hosts_, split));
  }

  // Of the deeper probe.
  [[nodiscard]] std::size_t depth(std::size_t h) const {
    std::size_t layers = 0;
    double bytes = model_.head;
    const std::size_t most = std::min(bench_.probe_layers, model_.layers.size());
    while (layers < most && bytes + model_.layers[layers].weights <= hosts_[h].memory) {
      bytes += model_.layers[layers++].weights;
    }
    if (layers < 2) {
      throw std::invalid_argument(
          fmt::format("host '{}' has no memory for the head and two layers, which is what is "
                      "measured: leave it out",
                      printable(hosts_[h].name)));
    }
    return layers;
  }
  [[nodiscard]] std::size_t shallow(std::size_t h) const { return depth(h) / 2; }

  void measure_layers(std::size_t h) {
    const std::size_t deep = depth(h);
    const std::size_t few = shallow(h);
    const std::string name = printable(hosts_[h].name);
    const double few_time = time_of(fmt::format("{}: {} layers", name, few), {{h, few, 0}});
    const double deep_time = time_of(fmt::format("{}: {} layers", name, deep), {{h, deep, 0}});
    HostTimes& times = hosts_[h].times;
    times.layer = std::max(0.0, (deep_time - few_time) / static_cast<double>(deep - few));
    times.rest = std::max(0.0, deep_time - static_cast<double>(deep) * times.layer);
    const bool has_experts = std::ranges::any_of(
        model_.layers, [](const ModelLayer& layer) { return layer.experts > 0; });
    if (!has_experts || hosts_[h].is_here()) return;
    const double apart =
        time_of(fmt::format("{}: experts on this machine", name), {{h, deep, deep}});
    times.experts_here =
        std::max(0.0, times.layer + (apart - deep_time) / static_cast<double>(deep));
  }

  // In front of another host; this machine is always the first.
  void measure_entry(std::size_t h) {
    const auto follows = [&](std::size_t other) { return other != h && !hosts_[other].is_here(); };
    std::size_t other = 0;
    while (other < hosts_.size() && !follows(other)) ++other;
    if (other == hosts_.size()) return;
    const std::size_t half = model_.layers.size() / 2;
    const std::size_t mine = std::clamp<std::size_t>(half, 1, shallow(h));
    const std::size_t others = std::clamp<std::size_t>(half, 1, shallow(other));
    const double time = time_of(
        fmt::format("{} before {}", printable(hosts_[h].name), printable(hosts_[other].name)),
        {{h, mine, 0}, {other, others, 0}});
    const HostTimes& next = hosts_[other].times;
    const double layers = static_cast<double>(mine) * hosts_[h].times.layer +
                          static_cast<double>(others) * next.layer;
    hosts_[h].times.entry = time - layers - next.rest;
  }

  const LlamaBench& bench_;
  const LayeredModel& model_;
  std::vector<ServingHost>& hosts_;
  Probes probes_;
};

// "  RPC0: 127.0.0.1:50052 (7930 MiB, 7101 MiB free)": the second number.
std::optional<double> free_memory(std::string_view text, const std::string& device) {
  const std::size_t line = text.find(device + ":");
  if (line == std::string_view::npos) return std::nullopt;
  text = text.substr(line, text.find('\n', line) - line);
  const std::size_t end = text.rfind(" MiB free");
  const std::size_t begin = end == std::string_view::npos ? end : text.rfind(' ', end - 1);
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t mebibytes = 0;
  const auto result = std::from_chars(text.data() + begin + 1, text.data() + end, mebibytes);
  if (result.ec != std::errc{}) return std::nullopt;
  constexpr double kMebibyte = 1 << 20;
  return static_cast<double>(mebibytes) * kMebibyte;
}

}  // namespace

double token_time(const LlamaBench& bench, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {bench.program,
                                    "-o",
                                    "json",
                                    "-p",
                                    "0",
                                    "-n",
                                    std::to_string(bench.tokens),
                                    "-r",
                                    std::to_string(bench.repeats)};
  words.insert(words.end(), bench.arguments.begin(), bench.arguments.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::string text = output_of(words);
  const JsonDocument document(text, bench.program);
  std::vector<double> samples;
  for (const JsonValue record : document.root().elements()) {
    for (const JsonValue sample : record.at("samples_ns").elements()) {
      samples.push_back(sample.amount());
    }
  }
  if (samples.empty()) throw LlamaError(bench.program + " measured nothing");
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  constexpr double kNanosecond = 1e-9;
  return *middle * kNanosecond / bench.tokens;
}

void ask_for_memory(const LlamaBench& bench, std::vector<ServingHost>& hosts) {
  for (ServingHost& host : hosts) {
    if (host.is_here() || host.memory < kInfinity) continue;
    const std::string text = output_of({bench.program, "--rpc", host.endpoint, "--list-devices"});
    if (const auto free = free_memory(text, "RPC0")) host.memory = *free;
  }
}

void measure_hosts(const LlamaBench& bench, const GgufFile& file, const LayeredModel& model,
                   std::vector<ServingHost>& hosts) {
  HostMeasurement(bench, file, model, hosts).measure_all();
}

}  // namespace placewright
