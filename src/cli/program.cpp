#include "cli/program.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "backends/runtime.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/printable.h"
#include "planning/service.h"
#include "planning/suggestion.h"

namespace placewright::cli {
namespace {

constexpr const char* kDescription =
    "Places deep-learning models on unequal devices, and proves how good the placement is.";

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright plan model.onnx -o plan.json                     measure a model here, and "
    "plan\n"
    "  placewright run plan.json                                    run the plan, check its "
    "outputs\n"
    "  placewright serve squeezenet.xml resnet50.xml                serve several models\n"
    "  placewright compare examples/moirai/GoogLeNet.json           all planners on one problem\n"
    "  placewright report plan.json -o report.html                  everything on one page\n"
    "\n"
    "'placewright help VERB' explains a verb. Exit codes: 0 success, 1 the answer is no (no plan,\n"
    "not valid, not faster), 2 wrong usage, 3 bad input, 4 internal error.";

struct Verb {
  std::string_view name;
  void (*add)(CLI::App&, Action&);
};

constexpr auto kVerbs = std::to_array<Verb>({
    {"plan", add_plan},         {"compare", add_compare}, {"check", add_check},
    {"simulate", add_simulate}, {"run", add_run},         {"report", add_report},
    {"explain", add_explain},   {"whatif", add_what_if},  {"export", add_export},
    {"affinity", add_affinity}, {"online", add_online},   {"serve", add_serve},
    {"top", add_top},           {"fleet", add_fleet},     {"import", add_import},
    {"devices", add_devices},   {"profile", add_profile}, {"tune", add_tune},
    {"train", add_train},       {"llama", add_llama},     {"info", add_info},
    {"generate", add_generate}, {"zoo", add_zoo},         {"planners", add_planners},
});

// The options of all verbs take longer to make than small problems to read, so only those of the
// verb that the line begins with are made; of all where it begins with something else.
void build_command_line(CLI::App& program, Action& action, std::span<const char* const> words) {
  program.set_version_flag("--version", "placewright " PLACEWRIGHT_VERSION);
  program.footer(kExamples);
  program.require_subcommand(1);
  program.get_formatter()->column_width(36);
  program.get_formatter()->label("SUBCOMMAND", "VERB");
  const std::string_view first = words.empty() ? "" : words.front();
  const auto chosen = std::ranges::find(kVerbs, first, &Verb::name);
  if (chosen != kVerbs.end()) return chosen->add(program, action);
  if (first == "--version" && words.size() == 1) return;
  for (const Verb& verb : kVerbs) verb.add(program, action);
  for (CLI::App* verb : program.get_subcommands({})) verb->group("Verbs");
  // Hidden: for those who package the program.
  add_schemas(program, action);
  add_manual(program, action);
  add_completion(program, action);
}

std::vector<std::string> verb_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* verb : program.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

ExitCode fail(ExitCode code, const std::string& message) {
  tell(fmt::format("placewright: error: {}\n", printable(message)));
  return code;
}

ExitCode fail_to_print() {
  return fail(ExitCode::bad_input, "standard output: cannot be written");
}

// The word that no option or argument took; a flag rather than what may be its value.
std::string first_unexpected(const CLI::App& program) {
  const std::vector<std::string> words = program.remaining(true);
  const auto flag = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with('-'); });
  return flag != words.end() ? *flag : words.empty() ? std::string{} : words.front();
}

// CLI11's own sentence for an unexpected word suggests nothing.
std::string unexpected_word(const CLI::App& program, const std::string& word) {
  const auto chosen = program.get_subcommands();
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    const CLI::App& scope = chosen.empty() ? program : *chosen.front();
    return fmt::format("unknown option '{}'{}", name, did_you_mean(name, option_names(scope)));
  }
  return fmt::format("unexpected argument '{}'", word);
}

ExitCode usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const auto chosen = program.get_subcommands();
  const std::string word = first_unexpected(program);
  const bool unexpected =
      !word.empty() &&
      (chosen.empty() || error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError));
  fail(ExitCode::usage, unexpected ? unexpected_word(program, word) : error.what());
  tell(fmt::format("'placewright {}--help' shows the usage.\n",
                   chosen.empty() ? "" : chosen.front()->get_name() + " "));
  return ExitCode::usage;
}

// The first word that is no option names a verb; empty where there is none, or none is so called.
std::string unknown_verb(const CLI::App& program, const std::vector<std::string>& words) {
  const auto verb =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  if (verb == words.end()) return "";
  const std::vector<std::string> known = verb_names(program);
  return std::ranges::find(known, *verb) == known.end() ? *verb : "";
}

ExitCode run_action(const Action& action) {
  try {
    const ExitCode code = action();
    return std::fflush(stdout) == 0 ? code : fail_to_print();
  } catch (const InterruptedError& error) {
    tell(fmt::format("placewright: {}\n", error.what()));
    return ExitCode::no;
  } catch (const UsageError& error) {
    return fail(ExitCode::usage, error.what());
  } catch (const RequestError& error) {
    return fail(ExitCode::usage, error.what());
  } catch (const InputError& error) {
    return fail(ExitCode::bad_input, error.what());
  } catch (const OutputError& error) {
    return fail(ExitCode::bad_input, error.what());
  } catch (const RuntimeError& error) {
    return fail(ExitCode::fault, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::fault, "out of memory");
  } catch (const std::exception& error) {
    // fmt reports a full disk behind stdout as an exception of its own.
    if (std::ferror(stdout) != 0) return fail_to_print();
    return fail(ExitCode::fault, fmt::format("internal error: {}", error.what()));
  }
}

// For exceptions that leave a thread of some library, which nobody can catch: the program ends, but
// with its own exit code and a sentence. Files are whole also then (formats/text_file.h).
[[noreturn]] void end_with_a_sentence() {
  try {
    if (const std::exception_ptr current = std::current_exception()) {
      std::rethrow_exception(current);
    }
    fail(ExitCode::fault, "internal error: the program was asked to terminate");
  } catch (const std::bad_alloc&) {
    fail(ExitCode::fault, "out of memory");
  } catch (const std::exception& error) {
    fail(ExitCode::fault, fmt::format("internal error: {}", error.what()));
  } catch (...) {
    fail(ExitCode::fault, "internal error: an unknown exception");
  }
  std::_Exit(static_cast<int>(ExitCode::fault));
}

ExitCode run(int argc, char** argv) {
  CLI::App program(kDescription, "placewright");
  Action action;
  const std::span<const char* const> given(argv, static_cast<std::size_t>(argc));
  build_command_line(program, action, given.subspan(std::min<std::size_t>(1, given.size())));
  if (argc < 2) {
    tell(program.help());
    return ExitCode::usage;
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  // 'help VERB' is 'VERB --help', and 'help' alone '--help'.
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  // Before CLI11, which answers --help whatever else is there.
  if (const std::string verb = unknown_verb(program, words); !verb.empty()) {
    fail(ExitCode::usage,
         fmt::format("unknown verb '{}'{}", verb, did_you_mean(verb, verb_names(program))));
    tell("'placewright --help' lists the verbs.\n");
    return ExitCode::usage;
  }
  try {
    program.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the last one first
  } catch (const CLI::Success& answer) {
    program.exit(answer);  // --help, --version
    return std::cout.flush() ? ExitCode::success : fail_to_print();
  } catch (const CLI::ParseError& error) {
    return usage_error(program, error);
  } catch (const UsageError& error) {
    return fail(ExitCode::usage, error.what());
  }
  return run_action(action);
}

// A file opened later would take the number of a stream that the caller has closed, and then the
// text that is meant for the stream. What is opened here fails as a closed stream does; only stderr
// swallows what it gets.
void occupy_closed_streams() {
  for (const auto& [stream, mode] :
       {std::pair{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}) {
    // The lowest free number is taken, and those below this one are in use.
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", mode);
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  occupy_closed_streams();
  // What is printed goes out at the end, so that files are written even if nobody can read it.
  constexpr std::size_t kPrintedAtOnce = std::size_t{1} << 20U;
  if (!is_terminal(stdout)) std::setvbuf(stdout, nullptr, _IOFBF, kPrintedAtOnce);
  // A write beyond the limit on file sizes is an error of that write, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(end_with_a_sentence);
  return static_cast<int>(run(argc, argv));
}

}  // namespace placewright::cli
