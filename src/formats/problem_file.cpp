#include "formats/problem_file.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/json.h"
#include "formats/other_files.h"
#include "formats/other_plans.h"
#include "formats/problem_formats.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

// "'placewright' (placewright), or 'maxFPGAs' or 'maxCPUs' (msr), ..."
std::string all_formats() {
  std::vector<std::string> entries;
  for (const ProblemFormat& format : problem_formats()) {
    entries.push_back(fmt::format("{} ({})", format.recognised_by, format.name));
  }
  return fmt::format("{}", fmt::join(entries, ", or "));
}

const ProblemFormat& recognise(JsonValue root) {
  for (const ProblemFormat& format : problem_formats()) {
    if (format.recognises(root)) return format;
  }
  if (const OtherPlanFormat* plan = other_plan_format(root)) {
    root.fail(fmt::format("this is a plan ({}); expected a problem", plan->name));
  }
  root.fail(fmt::format("the format is not known: expected the key {}", all_formats()));
}

const ProblemFormat& format_named(const std::string& name) {
  if (const ProblemFormat* format = find_problem_format(name)) return *format;
  throw std::invalid_argument(fmt::format("no format is called '{}' (known: {})", name,
                                          fmt::join(problem_format_names(), ", ")));
}

// What a problem is called whose file does not say.
std::string name_from(const std::string& origin) {
  std::string stem = std::filesystem::path(origin).stem().string();
  return stem.empty() ? "problem" : stem;
}

// A change of objective may renumber the devices (draft.h).
void change_objective(ProblemFile& file, Objective objective) {
  if (objective == file.draft.objective) return;
  const std::vector<Device> before = file.draft.cluster.devices;
  file.draft = with_objective(std::move(file.draft), objective);
  if (file.draft.cluster.devices == before) return;
  file.place_of = [places = std::move(file.place_of)](DraftPart part, std::size_t index) {
    return places(part == DraftPart::device ? DraftPart::problem : part, index);
  };
}

}  // namespace

void take_places_of_cluster(ProblemFile& file, const std::string& cluster_file) {
  file.place_of = [places = std::move(file.place_of), origin = file.file, cluster_file](
                      DraftPart part, std::size_t index) -> Place {
    switch (part) {
      case DraftPart::kind:
        return {cluster_file, fmt::format("/kinds/{}", index)};
      case DraftPart::resource:
        return {cluster_file, fmt::format("/resources/{}", index)};
      case DraftPart::space:
        return {cluster_file, fmt::format("/spaces/{}", index)};
      case DraftPart::device:
        return {cluster_file, fmt::format("/devices/{}", index)};
      case DraftPart::link:
        return {cluster_file, "/interconnect"};
      default:
        return places ? places(part, index) : Place{origin, ""};
    }
  };
}

ProblemFile parse_problem(std::string_view text, const std::string& origin,
                          const ReadOptions& options) {
  if (const auto other = seems_to_be(text)) {
    throw InputError(origin, "", fmt::format("is not a problem file; it seems to be {}", *other));
  }
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  const ProblemFormat& format =
      options.format.empty() ? recognise(root) : format_named(options.format);
  ProblemFile file = format.read(root, name_from(origin), !options.cluster.empty());
  file.format = format.name;
  file.file = origin;
  file.digest = digest_of(text);
  if (!options.cluster.empty()) {
    const ClusterFile cluster = read_cluster(options.cluster, file.draft.unit);
    file.draft = with_cluster(std::move(file.draft), cluster, origin);
    file.cluster_digest = cluster.digest;
    take_places_of_cluster(file, cluster.file);
    file.warnings.insert(file.warnings.end(), cluster.warnings.begin(), cluster.warnings.end());
  }
  if (options.objective) change_objective(file, *options.objective);
  return file;
}

ProblemFile read_problem(const std::string& path, const ReadOptions& options) {
  ProblemFile file = parse_problem(read_whole(path), input_name(path), options);
  // Paths in a file are relative to its folder; from here on they lead there from anywhere.
  const std::filesystem::path folder =
      path == "-" ? std::filesystem::path{} : std::filesystem::path(path).parent_path();
  for (Model& model : file.draft.models) {
    if (!model.source) continue;
    model.source->path =
        std::filesystem::absolute(folder / model.source->path).lexically_normal().string();
  }
  return file;
}

Problem build_problem(ProblemFile file) {
  return build_problem(std::move(file.draft), file);
}

Problem build_problem(ProblemDraft draft, const ProblemFile& file) {
  try {
    return Problem(std::move(draft));
  } catch (const InvalidProblem& invalid) {
    const Place place =
        file.place_of ? file.place_of(invalid.part(), invalid.index()) : Place{file.file, ""};
    throw InputError(place.file, place.pointer, invalid.what());
  }
}

FileKind kind_of_file(std::string_view text, const std::string& origin) {
  const JsonDocument document(text, origin);
  const JsonValue root = document.root();
  const auto stated = root.find("placewright");
  if (stated && stated->is_text() && stated->text() == "cluster") return FileKind::cluster;
  const bool plan = stated && stated->is_text() && stated->text() == "plan";
  return plan || other_plan_format(root) != nullptr ? FileKind::plan : FileKind::problem;
}

}  // namespace placewright
