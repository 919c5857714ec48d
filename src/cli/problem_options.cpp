#include "cli/problem_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

#include "analysis/variation.h"
#include "cli/choice_option.h"
#include "cli/exit_code.h"
#include "cli/model_problem.h"
#include "cli/number_option.h"
#include "cli/repeated_option.h"
#include "formats/input_error.h"
#include "formats/problem_formats.h"
#include "formats/text_file.h"
#include "planning/suggestion.h"
#include "problem/join.h"

namespace placewright::cli {
namespace {

template <class Value>
void set_if(Value& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

template <class Noun>
std::size_t index_of_name(const char* flag, const std::vector<Noun>& nouns, const std::string& name,
                          const char* what) {
  const auto found =
      std::find_if(nouns.begin(), nouns.end(), [&](const Noun& noun) { return noun.name == name; });
  if (found != nouns.end()) return static_cast<std::size_t>(found - nouns.begin());
  std::vector<std::string> names;
  for (const Noun& noun : nouns) names.push_back(noun.name);
  throw UsageError(
      fmt::format("{}: no {} is called '{}'{}", flag, what, name, did_you_mean(name, names)));
}

// The op of this name, or all that match it as a pattern of the shell: "encoder.layer.[0-5].*".
std::vector<std::size_t> ops_called(const char* flag, const std::vector<Op>& ops,
                                    const std::string& name) {
  const auto exact = [&](const Op& op) { return op.name == name; };
  const bool pattern = name.find_first_of("*?[") != std::string::npos;
  if (!pattern || std::any_of(ops.begin(), ops.end(), exact)) {
    return {index_of_name(flag, ops, name, "op")};
  }
  std::vector<std::size_t> matching;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    if (::fnmatch(name.c_str(), ops[op].name.c_str(), 0) == 0) matching.push_back(op);
  }
  if (matching.empty()) throw UsageError(fmt::format("{}: no op matches '{}'", flag, name));
  return matching;
}

struct OpsAndDevice {
  std::vector<std::size_t> ops;
  DeviceId device;
};

// OP=DEVICE. Op names may contain "=", device names hardly do.
OpsAndDevice ops_and_device(const char* flag, const ProblemDraft& draft, const std::string& text) {
  const std::size_t split = text.rfind('=');
  const std::string device = text.substr(split + 1);
  return {ops_called(flag, draft.ops, text.substr(0, split)),
          DeviceId{index_of_name(flag, draft.cluster.devices, device, "device")}};
}

void require_op_and_device(const char* flag, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (text.find('=') != std::string::npos) continue;
    throw UsageError(fmt::format("{}: '{}' is not of the form OP=DEVICE", flag, text));
  }
}

}  // namespace

void ProblemOptions::add_argument_to(CLI::App& verb) {
  verb.add_option("problem", path, "A problem or model file; - is standard input")
      ->required()
      ->type_name("FILE");
  verb.add_option("more", more, "More models to plan together for the same devices")
      ->type_name("FILE");
  add_flags_to(verb);
  models.add_to(verb);
  devices.add_to(verb);
  measuring.add_to(verb);
}

void ProblemOptions::add_option_to(CLI::App& verb) {
  verb.add_option("--problem", path, "The problem file, where the plan does not name one")
      ->group("Problem")
      ->type_name("FILE");
  add_flags_to(verb);
}

void ProblemOptions::add_flags_to(CLI::App& verb) {
  const auto choice = [&](const char* flag, auto& chosen, const char* help) {
    add_choice(verb, flag, chosen, help)->group("Problem");
  };
  std::vector<std::string> formats = problem_format_names();
  formats.insert(formats.end(), other_formats.begin(), other_formats.end());
  add_choice(
      verb, "--format", formats, [this](const std::string& name) { format = name; },
      "Read the file as this format instead of recognising it")
      ->group("Problem");
  verb.add_option("--cluster", cluster,
                  "Take the devices from this file, where the model or problem has none")
      ->group("Problem")
      ->type_name("FILE");
  choice("--objective", objective, "What plans minimise");
  choice("--contiguity", contiguity, "throughput: which sets of ops a device may run");
  choice("--transfers", transfers, "throughput: how transfers share a device's time with compute");
  choice("--training", training, "throughput: how forward and backward passes add up");
  choice("--memory", memory, "What must fit into memory: weights, or tensors too");
  choice("--schedule", schedule,
         "throughput: the training schedule, which sets how many micro-batches a stage holds");
  add_number(verb, "--micro-batches", micro_batches, {1, 1000000},
             "throughput: micro-batches of a training step, which limit what a stage holds")
      ->group("Problem");
  // A flag bound to an optional would be set to false when it is absent.
  verb.add_flag_callback(
          "--congestion", [this] { congestion = true; },
          "Let transfers wait for each other at a device's ports (the default)")
      ->group("Problem");
  verb.add_flag_callback(
          "--no-congestion", [this] { congestion = false; },
          "Let transfers never wait for each other")
      ->group("Problem");
  add_number(verb, "--calls", calls, {1, 1000000},
             "call-latency: how often each accelerator may be called")
      ->group("Problem");
  add_number(verb, "--replicas", replicas, {1, 1000000},
             "throughput: how many devices may share a stage")
      ->group("Problem");
  add_repeated(verb, "--pin", pins, "OP=DEVICE",
               "Run these ops on this device; OP may be a pattern (layer.[0-5].*); repeatable")
      ->group("Problem");
  add_repeated(verb, "--forbid", forbids, "OP=DEVICE",
               "Keep these ops off this device; OP may be a pattern; repeatable")
      ->group("Problem");
}

bool ProblemOptions::names_models() const {
  return format.empty() && path != "-" && backend_reading(path) != nullptr;
}

std::vector<ModelFile> ProblemOptions::model_files() const {
  std::vector<std::string> paths = more;
  paths.insert(paths.begin(), path);
  for (const std::string& other : paths) {
    if (backend_reading(other) != nullptr) continue;
    throw UsageError(fmt::format("{} is not a model, but {} is: give models or problems, not both",
                                 other, path));
  }
  return models.files(paths);
}

void ProblemOptions::check() const {
  std::vector<std::string> files = more;
  files.push_back(path);
  // The cluster is read once for each model.
  for (std::size_t i = 0; i <= more.size(); ++i) files.push_back(cluster);
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw UsageError("-: only one file can be standard input");
  }
  Rules unused;
  apply_rules_to(unused);
  require_op_and_device("--pin", pins);
  require_op_and_device("--forbid", forbids);
}

ProblemFile ProblemOptions::read(const OutputOptions& output) const {
  check();
  ProblemFile file = names_models() ? read_models(output.quiet) : read_problems();
  apply_to(file.draft);
  return file;
}

ProblemFile ProblemOptions::read_models(bool quiet) const {
  if (!cluster.empty() && !devices.names.empty()) {
    throw UsageError(
        "give --device or --cluster, not both: --device measures the model on this machine, "
        "--cluster estimates its times");
  }
  ProblemFile file = cluster.empty() ? measured_problem(model_files(), devices, measuring, quiet)
                                     : estimated_problem(model_files(), cluster, quiet);
  if (objective) file.draft = with_objective(std::move(file.draft), *objective);
  return file;
}

ProblemFile ProblemOptions::read_problems() const {
  if (!devices.names.empty() || models.given()) {
    throw UsageError(
        "--device, --shape and --precision are for models; a problem file states its own");
  }
  const ReadOptions options = read_options();
  ProblemFile file = read_problem(path, options);
  if (!more.empty()) join_more(file, options);
  return file;
}

void ProblemOptions::join_more(ProblemFile& file, const ReadOptions& options) const {
  std::vector<ProblemDraft> drafts;
  drafts.push_back(std::move(file.draft));
  for (const std::string& name : more) {
    ProblemFile other = read_problem(name, options);
    file.digest += other.digest;
    file.warnings.insert(file.warnings.end(), other.warnings.begin(), other.warnings.end());
    drafts.push_back(std::move(other.draft));
  }
  file.digest = digest_of(file.digest);
  file.op_ids.clear();
  file.place_of = [origin = file.file](DraftPart, std::size_t) { return Place{origin, ""}; };
  try {
    file.draft = joined(std::move(drafts));
  } catch (const std::invalid_argument& error) {
    throw InputError(file.file, "", error.what());
  }
}

void ProblemOptions::apply_to(ProblemDraft& draft) const {
  apply_rules_to(draft.rules);
  apply_pins_to(draft);
}

void ProblemOptions::apply_rules_to(Rules& rules) const {
  set_if(rules.contiguity, contiguity);
  set_if(rules.transfers, transfers);
  set_if(rules.training, training);
  set_if(rules.memory, memory);
  set_if(rules.schedule, schedule);
  set_if(rules.micro_batches, micro_batches);
  set_if(rules.congestion, congestion);
  set_if(rules.calls_per_device, calls);
  set_if(rules.max_replicas, replicas);
}

void ProblemOptions::apply_pins_to(ProblemDraft& draft) const {
  for (const std::string& pin : pins) {
    const auto [ops, device] = ops_and_device("--pin", draft, pin);
    for (const std::size_t op : ops) draft.ops[op].pinned_to = device;
  }
  for (const std::string& forbidden : forbids) {
    const auto [ops, device] = ops_and_device("--forbid", draft, forbidden);
    draft = with_forbidden(std::move(draft), ops, device);
  }
}

}  // namespace placewright::cli
