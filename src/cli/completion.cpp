// Shell completions, from the options that parse the command line: `placewright completion SHELL`.
// Hidden from the help; the build installs what it prints.

#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/option_table.h"
#include "cli/verbs.h"

namespace placewright::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> names_of(const std::vector<VerbRow>& verbs) {
  std::vector<std::string> names;
  for (const VerbRow& verb : verbs) names.push_back(verb.name);
  return names;
}

std::vector<std::string> names_of(const OptionRow& option) {
  std::vector<std::string> names;
  if (!option.short_name.empty()) names.push_back(option.short_name);
  if (!option.long_name.empty()) names.push_back(option.long_name);
  return names;
}

// Text between single quotes, as all three shells take it.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char character : text) {
    if (character == '\'') {
      result += "'\\''";
    } else {
      result += character;
    }
  }
  return result + "'";
}

// What follows an option: its choices, a file, or nothing that can be guessed.
std::string bash_values(const OptionRow& option) {
  if (!option.choices.empty()) {
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))",
                       in_quotes(joined(option.choices)));
  }
  return option.takes_file() ? "COMPREPLY=($(compgen -f -- \"$word\"))" : "COMPREPLY=()";
}

std::string bash_verb(const VerbRow& verb) {
  std::vector<std::string> words;
  std::string cases;
  for (const OptionRow& option : verb.options) {
    for (const std::string& name : names_of(option)) {
      words.push_back(name);
      if (option.value.empty()) continue;
      cases += fmt::format("        {}) {}; return ;;\n", name, bash_values(option));
    }
  }
  std::string text = fmt::format("    {})\n", verb.name);
  if (!cases.empty()) text += fmt::format("      case $before in\n{}      esac\n", cases);
  text += fmt::format(
      "      if [[ $word == -* ]]; then\n"
      "        COMPREPLY=($(compgen -W {} -- \"$word\"))\n",
      in_quotes(joined(words)));
  if (verb.takes_file()) {
    text += "      else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n";
  }
  return text + "      fi\n      ;;\n";
}

std::string bash_completion(const std::vector<VerbRow>& verbs) {
  std::string text = fmt::format(
      "# bash completion for placewright, printed by 'placewright completion bash'.\n"
      "_placewright() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W {} -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      in_quotes(joined(names_of(verbs)) + " --help --version"));
  for (const VerbRow& verb : verbs) text += bash_verb(verb);
  return text + "  esac\n}\ncomplete -o filenames -F _placewright placewright\n";
}

// A help text inside an _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char character : text) {
    if (character == '[' || character == ']' || character == ':' || character == '\\') {
      result += '\\';
    }
    result += character;
  }
  return result;
}

std::string zsh_option(const OptionRow& option) {
  std::string values;
  if (!option.value.empty()) {
    values = fmt::format(":{}:", zsh_text(option.value));
    if (!option.choices.empty()) {
      values += fmt::format("({})", joined(option.choices));
    } else if (option.takes_file()) {
      values += "_files";
    }
  }
  std::string text;
  for (const std::string& name : names_of(option)) {
    text += fmt::format(" \\\n        {}",
                        in_quotes(fmt::format("*{}[{}]{}", name, zsh_text(option.help), values)));
  }
  return text;
}

std::string zsh_completion(const std::vector<VerbRow>& verbs) {
  std::string text =
      "#compdef placewright\n"
      "# zsh completion for placewright, printed by 'placewright completion zsh'.\n"
      "_placewright() {\n"
      "  local -a verbs=(\n";
  for (const VerbRow& verb : verbs) {
    text += fmt::format("    {}\n", in_quotes(verb.name + ":" + zsh_text(verb.help)));
  }
  text +=
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe 'verb' verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n";
  for (const VerbRow& verb : verbs) {
    text += fmt::format("    {})\n      _arguments", verb.name);
    for (const OptionRow& option : verb.options) text += zsh_option(option);
    if (verb.takes_file()) {
      text += fmt::format(" \\\n        '1:{}:_files'", verb.argument);
    }
    text += "\n      ;;\n";
  }
  return text + "  esac\n}\ncompdef _placewright placewright\n";
}

std::string fish_option(const std::string& verb, const OptionRow& option) {
  std::string text =
      fmt::format("complete -c placewright -n '__fish_seen_subcommand_from {}'", verb);
  if (!option.short_name.empty()) text += " -s " + option.short_name.substr(1);
  if (!option.long_name.empty()) text += " -l " + option.long_name.substr(2);
  if (!option.choices.empty()) {
    text += " -x -a " + in_quotes(joined(option.choices));
  } else if (option.takes_file()) {
    text += " -r -F";
  } else if (!option.value.empty()) {
    text += " -x";
  }
  // fish has its own rule for quotes inside quotes; help texts keep to typographic ones.
  std::string help = option.help;
  std::erase(help, '\'');
  return text + " -d " + in_quotes(help) + "\n";
}

std::string fish_completion(const std::vector<VerbRow>& verbs) {
  std::string text =
      "# fish completion for placewright, printed by 'placewright completion fish'.\n"
      "complete -c placewright -n __fish_use_subcommand -f\n";
  for (const VerbRow& verb : verbs) {
    text += fmt::format("complete -c placewright -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                        in_quotes(verb.help));
  }
  for (const VerbRow& verb : verbs) {
    for (const OptionRow& option : verb.options) text += fish_option(verb.name, option);
  }
  return text;
}

ExitCode print_completion(const CLI::App& program, const std::string& shell) {
  const std::vector<VerbRow> verbs = verb_table(program);
  if (shell == "bash") {
    fmt::print("{}", bash_completion(verbs));
  } else if (shell == "zsh") {
    fmt::print("{}", zsh_completion(verbs));
  } else if (shell == "fish") {
    fmt::print("{}", fish_completion(verbs));
  } else {
    throw UsageError(fmt::format("no completion for '{}' (known: bash, zsh, fish)", shell));
  }
  return ExitCode::success;
}

}  // namespace

void add_completion(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("completion", "Print a shell's completion");
  verb->group("");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")->required();
  verb->callback([&action, &program, shell] {
    action = [&program, shell] { return print_completion(program, *shell); };
  });
}

}  // namespace placewright::cli
