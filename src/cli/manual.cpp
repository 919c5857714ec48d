// The man page, from the program's own help: `placewright man`. Hidden from the help; the build
// installs what it prints.

#include <string>

#include <fmt/format.h>

#include "cli/option_table.h"
#include "cli/verbs.h"

namespace placewright::cli {
namespace {

// Text as roff takes it: no backslash, dash or leading dot may be mistaken for a command.
std::string roff(const std::string& text) {
  std::string result;
  for (const char character : text) {
    const bool line_start = result.empty() || result.back() == '\n';
    if (line_start && (character == '.' || character == '\'')) result += "\\&";
    if (character == '\\') {
      result += "\\e";
    } else if (character == '-') {
      result += "\\-";
    } else {
      result += character;
    }
  }
  return result;
}

std::string option_entry(const OptionRow& option) {
  std::string names = option.short_name;
  if (!option.long_name.empty()) names += (names.empty() ? "" : ", ") + option.long_name;
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(names));
  if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", roff(option.value));
  text += fmt::format("\n{}", roff(option.help));
  if (!option.standard.empty()) text += fmt::format(" (default: {})", roff(option.standard));
  return text + "\n";
}

std::string verb_section(const VerbRow& verb) {
  std::string text = fmt::format(".SS placewright {} [\\fIoptions\\fR]", verb.name);
  if (!verb.argument.empty()) text += fmt::format(" \\fI{}\\fR", verb.argument);
  text += fmt::format("\n{}.\n", roff(verb.help));
  for (const OptionRow& option : verb.options) text += option_entry(option);
  if (!verb.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(verb.footer));
  return text;
}

std::string manual(const CLI::App& program) {
  std::string text = fmt::format(
      ".TH PLACEWRIGHT 1 \"\" \"placewright {}\" \"User Commands\"\n"
      ".SH NAME\nplacewright \\- place deep-learning models on unequal devices\n"
      ".SH SYNOPSIS\n\\fBplacewright\\fR \\fIverb\\fR [\\fIoptions\\fR] [\\fIfile\\fR]\n"
      ".SH DESCRIPTION\n{}\n.SH VERBS\n",
      roff(PLACEWRIGHT_VERSION), roff(program.get_description()));
  for (const VerbRow& verb : verb_table(program)) text += verb_section(verb);
  text += fmt::format(".SH EXAMPLES AND EXIT CODES\n.nf\n{}\n.fi\n", roff(program.get_footer()));
  return text;
}

}  // namespace

void add_manual(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("man", "Print the man page");
  verb->group("");
  verb->callback([&action, &program] {
    action = [&program] {
      fmt::print("{}", manual(program));
      return ExitCode::success;
    };
  });
}

}  // namespace placewright::cli
