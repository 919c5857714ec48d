// A hidden verb: the JSON Schemas of our own files, from which docs/schema is made.

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "formats/file_schemas.h"
#include "formats/json_text.h"
#include "formats/text_file.h"

namespace placewright::cli {
namespace {

ExitCode write_schemas(const std::string& folder) {
  for (const FileSchema& schema : kFileSchemas) {
    const std::filesystem::path file =
        std::filesystem::path(folder) / fmt::format("{}.json", schema.name);
    write_whole(file.string(), json_text(schema.make(), 2) + '\n');
  }
  return ExitCode::success;
}

}  // namespace

void add_schemas(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("schemas", "Write the JSON Schemas of our own files");
  verb->group("");
  const auto folder = std::make_shared<std::string>();
  verb->add_option("folder", *folder, "Where they go")->required()->type_name("FOLDER");
  verb->callback([&action, folder] { action = [folder] { return write_schemas(*folder); }; });
}

}  // namespace placewright::cli
