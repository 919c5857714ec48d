#include "cli/problem_options.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "planning/suggestion.h"
#include "problem/join.h"

namespace placewright::cli {
namespace {

// Looks up a flag's value among an enumeration's names.
template <class Value>
std::optional<Value> choice(const char* flag, const std::string& text,
                            std::optional<Value> (*named)(std::string_view),
                            const std::vector<Value>& values) {
  if (text.empty()) return std::nullopt;
  if (const auto value = named(text)) return value;
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  const std::string hint = did_you_mean(text, names);
  throw UsageError(
      fmt::format("{}: unknown value '{}'{}", flag, text,
                  hint.empty() ? fmt::format(" (known: {})", fmt::join(names, ", ")) : hint));
}

std::optional<Objective> chosen_objective(const std::string& text) {
  return choice<Objective>("--objective", text, objective_named,
                           {Objective::throughput, Objective::call_latency, Objective::latency,
                            Objective::total_completion});
}

std::optional<Format> chosen_format(const std::string& text) {
  return choice<Format>("--format", text, format_named,
                        {Format::placewright, Format::moirai, Format::msr, Format::talos});
}

template <class Value>
void set_if(Value& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

template <class Noun>
std::size_t index_of_name(const std::vector<Noun>& nouns, const std::string& name,
                          const char* what) {
  const auto found =
      std::find_if(nouns.begin(), nouns.end(), [&](const Noun& noun) { return noun.name == name; });
  if (found != nouns.end()) return static_cast<std::size_t>(found - nouns.begin());
  std::vector<std::string> names;
  for (const Noun& noun : nouns) names.push_back(noun.name);
  throw UsageError(
      fmt::format("--pin: no {} is called '{}'{}", what, name, did_you_mean(name, names)));
}

}  // namespace

Objective objective_for_flag(const std::string& name) {
  const auto objective = chosen_objective(name);
  if (!objective) throw UsageError("--objective: expected a name");
  return *objective;
}

void ProblemOptions::add_argument_to(CLI::App& verb) {
  verb.add_option("problem", path, "The problem or model file; - is standard input")
      ->required()
      ->type_name("FILE");
  verb.add_option("more", more, "Further models for the same devices, planned together")
      ->type_name("FILE");
  add_flags_to(verb);
}

void ProblemOptions::add_option_to(CLI::App& verb) {
  verb.add_option("--problem", path, "The problem, where the plan does not lead to it")
      ->group("Problem")
      ->type_name("FILE");
  add_flags_to(verb);
}

void ProblemOptions::add_flags_to(CLI::App& verb) {
  const auto text = [&](const char* flag, std::string& value, const char* help, const char* type) {
    verb.add_option(flag, value, help)->group("Problem")->type_name(type);
  };
  text("--format", format, "Read the file as this format instead of recognising it", "NAME");
  text("--cluster", cluster, "The devices, where the model file has none", "FILE");
  text("--objective", objective, "throughput, call-latency, latency or total-completion", "NAME");
  text("--contiguity", contiguity, "throughput: none, joint or per-device", "NAME");
  text("--transfers", transfers, "throughput: sequential, overlapped or duplex", "NAME");
  text("--training", training, "throughput: interleaved or phased", "NAME");
  text("--memory", memory, "What must fit: resident (weights) or peak (tensors too)", "NAME");
  // A flag bound to an optional would be set to false when it is absent.
  verb.add_flag_callback(
          "--congestion", [this] { congestion = true; },
          "Transfers wait for each other at a device's ports (the default)")
      ->group("Problem");
  verb.add_flag_callback(
          "--no-congestion", [this] { congestion = false; }, "Transfers never wait")
      ->group("Problem");
  add_number(verb, "--calls", calls, {1, 1000000}, "call-latency: calls of each accelerator")
      ->group("Problem");
  add_number(verb, "--replicas", replicas, {1, 1000000},
             "throughput: devices that may share a stage")
      ->group("Problem");
  verb.add_option("--pin", pins, "This op runs on this device; may be given again")
      ->group("Problem")
      ->type_name("OP=DEVICE")
      ->allow_extra_args(false)
      ->take_all();
}

void ProblemOptions::check() const {
  std::vector<std::string> files = more;
  files.push_back(path);
  // The cluster is read once for each model.
  for (std::size_t i = 0; i <= more.size(); ++i) files.push_back(cluster);
  if (std::count(files.begin(), files.end(), "-") > 1) {
    throw UsageError("-: standard input can be read only once");
  }
  Rules unused;
  apply_rules_to(unused);
  chosen_objective(objective);
  chosen_format(format);
  for (const std::string& pin : pins) {
    if (pin.find('=') == std::string::npos) {
      throw UsageError(fmt::format("--pin: '{}' is not of the form OP=DEVICE", pin));
    }
  }
}

ProblemFile ProblemOptions::read() const {
  check();
  ReadOptions options;
  options.format = chosen_format(format);
  options.objective = chosen_objective(objective);
  if (!cluster.empty()) options.cluster = cluster;
  ProblemFile file = read_problem(path, options);
  if (!more.empty()) join_more(file, options);
  apply_to(file.draft);
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

void ProblemOptions::override(PlanReference& reference) const {
  if (!format.empty()) reference.problem.format = chosen_format(format);
  if (!objective.empty()) reference.objective = chosen_objective(objective);
  if (!cluster.empty()) reference.problem.cluster_path = cluster;
}

void ProblemOptions::apply_to(ProblemDraft& draft) const {
  apply_rules_to(draft.rules);
  apply_pins_to(draft);
}

void ProblemOptions::apply_rules_to(Rules& rules) const {
  set_if(rules.contiguity,
         choice<Contiguity>("--contiguity", contiguity, contiguity_named,
                            {Contiguity::none, Contiguity::joint, Contiguity::per_device}));
  set_if(rules.transfers, choice<TransferMode>("--transfers", transfers, transfer_mode_named,
                                               {TransferMode::sequential, TransferMode::overlapped,
                                                TransferMode::duplex}));
  set_if(rules.training, choice<TrainingMode>("--training", training, training_mode_named,
                                              {TrainingMode::interleaved, TrainingMode::phased}));
  set_if(rules.memory, choice<MemoryModel>("--memory", memory, memory_model_named,
                                           {MemoryModel::resident, MemoryModel::peak}));
  set_if(rules.congestion, congestion);
  set_if(rules.calls_per_device, calls);
  set_if(rules.max_replicas, replicas);
}

void ProblemOptions::apply_pins_to(ProblemDraft& draft) const {
  for (const std::string& pin : pins) {
    // Op names may contain "=", device names hardly do.
    const std::size_t split = pin.rfind('=');
    const std::size_t op = index_of_name(draft.ops, pin.substr(0, split), "op");
    draft.ops[op].pinned_to =
        DeviceId{index_of_name(draft.cluster.devices, pin.substr(split + 1), "device")};
  }
}

}  // namespace placewright::cli
