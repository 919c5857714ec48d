#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/choice_option.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/record_table.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "formats/gguf.h"
#include "formats/input_error.h"
#include "formats/llama_arguments.h"
#include "formats/printable.h"
#include "formats/serving_hosts.h"
#include "formats/text_file.h"
#include "machine/process.h"
#include "planners/hosts/layer_split_planner.h"
#include "profiling/llama_bench.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright llama model.gguf --hosts hosts.json           measure, plan, print the command\n"
    "  placewright llama model.gguf --hosts hosts.json --run     and become llama-server\n"
    "  placewright llama model.gguf --hosts hosts.json --measured measured.json\n"
    "  placewright llama model.gguf --hosts measured.json        plans without measuring\n"
    "  placewright llama model.gguf --hosts measured.json --split slow=6,fast=10\n"
    "\n"
    "hosts.json: {\"placewright\": \"llama-hosts\", \"version\": 1, \"hosts\": [{\"name\": "
    "\"fast\",\n"
    "\"endpoint\": \"10.0.0.1:50052\", \"memory\": 8e9}, …]}; each endpoint is an RPC server of "
    "llama.cpp.";

struct LlamaOptions {
  std::string model;
  std::string hosts;
  std::string written;
  std::string tools;
  std::string split;
  std::string program = "llama-server";
  int context = 4096;
  int tokens = 32;
  int repeats = 3;
  int probe_layers = 8;
  int threads = 0;
  bool run = false;
  OutputOptions output;
};

// A split with what is said of it.
struct Candidate {
  std::string name;
  LayerSplit split;
  double seconds = kInfinity;
  bool fits = true;
};

std::string program_path(const LlamaOptions& options, const std::string& program) {
  return options.tools.empty() ? program
                               : (std::filesystem::path(options.tools) / program).string();
}

// Times are of one model, on so many threads of this machine.
std::string description(const GgufFile& file, const LayeredModel& model,
                        const LlamaOptions& options) {
  double bytes = model.head;
  for (const ModelLayer& layer : model.layers) bytes += layer.weights;
  return fmt::format("{}, {} layers, {:.0f} bytes{}", printable(file.architecture()),
                     model.layers.size(), bytes,
                     options.threads > 0 ? fmt::format(", {} threads", options.threads) : "");
}

std::string split_text(std::span<const ServingHost> hosts, const LayerSplit& split) {
  std::string text;
  std::size_t done = 0;
  for (const HostShare& share : split) {
    text += fmt::format("{}{} {} to {}", done > 0 ? ", " : "", printable(hosts[share.host].name),
                        done, done + share.layers - 1);
    if (share.experts_here > 0) text += fmt::format(" (experts of {} here)", share.experts_here);
    done += share.layers;
  }
  return text;
}

Json split_json(std::span<const ServingHost> hosts, const LayerSplit& split) {
  Json list = Json::array();
  for (const HostShare& share : split) {
    list.push_back({{"host", hosts[share.host].name},
                    {"layers", share.layers},
                    {"experts_here", share.experts_here}});
  }
  return list;
}

// "slow=6,fast=10"
LayerSplit parsed_split(const std::string& text, std::span<const ServingHost> hosts,
                        std::size_t layers) {
  LayerSplit split;
  std::size_t sum = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.rfind('=');
    const auto host = std::ranges::find(hosts, part.substr(0, equals), &ServingHost::name);
    if (equals == std::string::npos || host == hosts.end()) {
      throw UsageError(
          fmt::format("--split: '{}' is not HOST=LAYERS with a host of the file", part));
    }
    const auto index = static_cast<std::size_t>(host - hosts.begin());
    if (std::ranges::find(split, index, &HostShare::host) != split.end()) {
      throw UsageError(fmt::format("--split: host '{}' twice", host->name));
    }
    if (host->is_here() && !split.empty()) {
      throw UsageError("--split: this machine has the first layers or none");
    }
    const int count = parse_number<int>("--split", part.substr(equals + 1), {1, 100000});
    split.push_back({index, static_cast<std::size_t>(count), 0});
    sum += split.back().layers;
    begin = end + 1;
  }
  if (sum != layers) {
    throw UsageError(fmt::format("--split: {} layers, but the model has {}", sum, layers));
  }
  return split;
}

// Ours first. Then what one would do without a planner.
std::vector<Candidate> candidates(const LlamaOptions& options, const LayeredModel& model,
                                  std::span<const ServingHost> hosts) {
  std::vector<Candidate> all;
  const auto add = [&](const std::string& name, LayerSplit split) {
    const bool fits = token_seconds(model, hosts, split) < kInfinity;
    const double seconds = token_seconds_if_it_fits(model, hosts, split);
    all.push_back({name, std::move(split), seconds, fits});
  };
  if (!options.split.empty()) {
    add("as asked", parsed_split(options.split, hosts, model.layers.size()));
  } else if (LayerSplit best = best_layer_split(model, hosts); !best.empty()) {
    add("planned", std::move(best));
  }
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    add(fmt::format("all on {}", printable(hosts[h].name)), {{h, model.layers.size(), 0}});
  }
  const bool all_state = std::ranges::all_of(
      hosts, [](const ServingHost& host) { return host.is_here() || host.memory < kInfinity; });
  const auto there = std::ranges::count_if(hosts, [](const auto& host) { return !host.is_here(); });
  if (all_state && there > 1) add("by memory (llama.cpp)", split_by_memory(model, hosts));
  return all;
}

RecordTable<ServingHost> host_table() {
  const auto of_times = [](double HostTimes::*member) {
    return [member](const ServingHost& host) { return host.times.*member; };
  };
  return RecordTable<ServingHost>({
      {"name", "host", words(), [](const auto& host) { return host.name; }},
      {"endpoint", "endpoint", words(),
       [](const auto& host) { return host.is_here() ? "here" : host.endpoint; }},
      {"memory", "memory", size(), [](const auto& host) { return finite_or_null(host.memory); }},
      {"layer", "layer", duration(), of_times(&HostTimes::layer)},
      {"experts_here", kNoTitle, words(),
       [](const auto& host) { return finite_or_null(host.times.experts_here); }},
      {"entry", "entry", duration(), of_times(&HostTimes::entry)},
      {"rest", "rest", duration(), of_times(&HostTimes::rest)},
  });
}

RecordTable<Candidate> candidate_table(std::span<const ServingHost> hosts) {
  return RecordTable<Candidate>({
      {"name", "split", words(), [](const auto& entry) { return entry.name; }},
      {"tokens_per_second", "tokens/s", number("{:.4g}"),
       [](const auto& entry) { return 1 / entry.seconds; }},
      {"seconds_per_token", kNoTitle, words(), [](const auto& entry) { return entry.seconds; }},
      {"fits", "fits", words(), [](const auto& entry) { return entry.fits; }},
      {"shares", kNoTitle, words(),
       [hosts](const auto& entry) { return split_json(hosts, entry.split); }},
      {kNoKey, "layers", words(),
       [hosts](const auto& entry) { return split_text(hosts, entry.split); }},
  });
}

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" \\|()*$\"'") == std::string::npos;
  return plain ? word : "'" + word + "'";
}

std::vector<std::string> command_of(const LlamaOptions& options, std::span<const ServingHost> hosts,
                                    const LayerSplit& split) {
  const auto program = std::ranges::find(llama_programs(), options.program, &LlamaProgram::name);
  std::vector<std::string> words = {program_path(options, options.program)};
  const auto arguments = llama_arguments(*program, options.model, hosts, split);
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (program->takes_context) words.insert(words.end(), {"-c", std::to_string(options.context)});
  if (options.threads > 0) words.insert(words.end(), {"-t", std::to_string(options.threads)});
  return words;
}

void measure(const LlamaOptions& options, const GgufFile& file, const LayeredModel& model,
             HostsFile& hosts) {
  StatusLine status(!options.output.quiet);
  LlamaBench bench{.program = program_path(options, "llama-bench"),
                   .tokens = options.tokens,
                   .repeats = options.repeats,
                   .probe_layers = static_cast<std::size_t>(options.probe_layers)};
  if (options.threads > 0) bench.arguments = {"-t", std::to_string(options.threads)};
  bench.say = [&](const std::string& what) { status.show("measuring " + what); };
  try {
    ask_for_memory(bench, hosts.hosts);
    measure_hosts(bench, file, model, hosts.hosts);
  } catch (const LlamaError& error) {
    throw InputError(input_name(options.hosts), "", error.what());
  } catch (const std::invalid_argument& error) {
    throw InputError(input_name(options.hosts), "", error.what());
  }
}

// `command` is empty where no split fits.
void print_document(const LlamaOptions& options, const LayeredModel& model, const HostsFile& hosts,
                    const std::vector<Candidate>& all, const std::vector<std::string>& command) {
  const bool fits = !command.empty();
  const Candidate& first = all.front();
  print_json({{"model", options.model},
              {"layers", model.layers.size()},
              {"split", fits ? Json(first.split.size() > 1) : Json(nullptr)},
              {"tokens_per_second", fits ? Json(1 / first.seconds) : Json(nullptr)},
              {"hosts", host_table().json(hosts.hosts)},
              {"candidates", candidate_table(hosts.hosts).json(all)},
              {"command", fits ? Json(command) : Json(nullptr)}});
}

void print_answer(const LlamaOptions& options, const LayeredModel& model, const HostsFile& hosts,
                  const std::vector<Candidate>& all) {
  const Candidate& first = all.front();
  const auto command = command_of(options, hosts.hosts, first.split);
  if (options.output.json) {
    print_document(options, model, hosts, all, command);
    return;
  }
  if (options.output.quiet) return;
  fmt::print("{}\n{}\n", host_table().text(hosts.hosts), candidate_table(hosts.hosts).text(all));
  const std::string verdict =
      first.split.size() > 1
          ? coloured("split", Colour::bold)
          : coloured("do not split", Colour::bold) + ", " + split_text(hosts.hosts, first.split);
  fmt::print("{}: {:.4g} tokens/s predicted\n", verdict, 1 / first.seconds);
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(quoted(printable(word)));
  fmt::print("{}\n", fmt::join(words, " "));
  std::fflush(stdout);
}

ExitCode plan_llama(const LlamaOptions& options) {
  const GgufFile file = read_gguf(options.model);
  const auto measured = static_cast<std::size_t>(options.probe_layers);
  const LayeredModel model =
      layered_model(file, static_cast<std::size_t>(options.context), measured);
  HostsFile hosts = read_hosts(read_whole(options.hosts), options.hosts);
  options.output.warn(hosts.warnings);
  if (hosts.hosts.size() > kMostServingHosts) {
    throw InputError(input_name(options.hosts), "/hosts",
                     fmt::format("at most {} hosts", kMostServingHosts));
  }
  if (model.layers.size() < 2) {
    throw InputError(input_name(options.model), "", "the model has one layer: nothing to share");
  }
  const std::string described = description(file, model, options);
  if (hosts.measured != described) {
    if (!hosts.measured.empty()) {
      options.output.warn({fmt::format("{} was measured with '{}': measured again",
                                       input_name(options.hosts), printable(hosts.measured))});
    }
    const Interruption interruption;
    measure(options, file, model, hosts);
    hosts.measured = described;
  }
  if (!options.written.empty()) write_whole(options.written, write_hosts(hosts));
  const std::vector<Candidate> all = candidates(options, model, hosts.hosts);
  if (!all.front().fits || (options.split.empty() && all.front().name != "planned")) {
    tell("placewright: infeasible: the hosts' memory does not hold the model and its context\n");
    if (options.output.json) print_document(options, model, hosts, all, {});
    return ExitCode::no;
  }
  print_answer(options, model, hosts, all);
  if (!options.run) return ExitCode::success;
  const auto command = command_of(options, hosts.hosts, all.front().split);
  try {
    become_process(command);
  } catch (const std::system_error& error) {
    throw InputError(command.front(), "", error.code().message());
  }
}

}  // namespace

void add_llama(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "llama", "Share a model of llama.cpp out over hosts, by measured speed");
  const auto options = std::make_shared<LlamaOptions>();
  verb->add_option("model", options->model, "A model in GGUF, in one part")
      ->required()
      ->type_name("FILE");
  verb->add_option("--hosts", options->hosts, "The hosts: RPC servers of llama.cpp, this machine")
      ->required()
      ->type_name("FILE");
  verb->add_option("--split", options->split, "State the speed of this split instead of planning")
      ->type_name("HOST=LAYERS,…");
  add_number(*verb, "--context", options->context, {1, 100'000'000},
             "Tokens whose keys and values the hosts keep");
  add_number(*verb, "--tokens", options->tokens, {1, 100'000}, "Tokens of a measurement");
  add_number(*verb, "--repeats", options->repeats, {1, 1000}, "Measurements, for the median");
  add_number(*verb, "--probe-layers", options->probe_layers, {2, 1000},
             "Most layers that are measured on a host");
  add_number(*verb, "--threads", options->threads, {0, 1024},
             "Threads of this machine; 0: as llama.cpp chooses");
  verb->add_option("--tools", options->tools, "Where the programs of llama.cpp are; else PATH")
      ->envname("PLACEWRIGHT_LLAMA_TOOLS")
      ->type_name("FOLDER");
  std::vector<std::string> names;
  for (const LlamaProgram& known : llama_programs()) names.emplace_back(known.name);
  add_choice(
      *verb, "--for", names, [options](const std::string& name) { options->program = name; },
      "Which program the command is for")
      ->default_str(options->program);
  verb->add_flag("--run", options->run, "Become that program");
  options->output.add_to(*verb);
  add_written(*verb, "--measured", options->written, "The hosts with what was measured");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return plan_llama(*options); }; });
}

}  // namespace placewright::cli
