// The command line as a table, read from the very options that parse it: what the man page and the
// shell completions are made of.

#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace placewright::cli {

struct OptionRow {
  std::string short_name;  // "-o", or empty
  std::string long_name;   // "--output"
  std::string help;
  std::string value;                 // what it takes: "FILE", "NAME"; empty: a flag
  std::string standard;              // its default, where it has one
  std::vector<std::string> choices;  // where only a few values make sense

  [[nodiscard]] bool takes_file() const { return value == "FILE" || value == "PLAN"; }
};

struct VerbRow {
  std::string name;
  std::string help;
  std::string argument;  // "FILE", "PLAN", "FAMILY", or empty
  std::string footer;    // examples
  std::vector<OptionRow> options;

  [[nodiscard]] bool takes_file() const { return argument == "FILE" || argument == "PLAN"; }
};

// The verbs that help lists, in its order.
std::vector<VerbRow> verb_table(const CLI::App& program);

}  // namespace placewright::cli
