#include "cli/model_problem.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/import.h"
#include "backends/target_devices.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "problem/cost_source.h"
#include "problem/join.h"
#include "problem/stated_precision.h"
#include "profiling/profile.h"
#include "profiling/recheck.h"

namespace placewright::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::vector<Target>& targets) {
  std::vector<std::string> names;
  for (const Target& target : targets) names.push_back(name_of(target));
  return names;
}

void say(bool quiet, const std::string& sentence) {
  if (!quiet) tell(fmt::format("placewright: {}\n", sentence));
}

// Everything that measured times depend on, but for the state of the machine.
std::string key_of(const ProfileRequest& request) {
  const std::string& backend = request.targets.front().backend;
  std::string text = fmt::format("2\n{}\n{}\n{}\n", runtime_named(backend).version(),
                                 processor_name(), fmt::join(names_of(request.targets), " "));
  for (const ModelFile& file : request.files) {
    text += fmt::format("{} {} {} {}\n", model_name_of(file.path), digest_of_file(file.path),
                        name_of(file.precision), fmt::join(file.shapes, " "));
  }
  return digest_of(text);
}

// Nullopt if the profile was never kept, or the file is damaged. They may have moved since. A file
// that is not of these models (it can be edited, or copied to another name) is refused, with a
// sentence.
std::optional<ProblemDraft> kept_profile(const std::string& path,
                                         const std::vector<ModelFile>& files, bool quiet) {
  std::error_code unreachable;
  if (!fs::exists(path, unreachable)) return std::nullopt;
  try {
    ProblemDraft draft = read_problem(path).draft;
    bool same = draft.models.size() == files.size();
    for (std::size_t i = 0; same && i < files.size(); ++i) {
      std::optional<ModelSource>& source = draft.models[i].source;
      same = source && source->digest == digest_of_file(files[i].path) &&
             source->shapes == files[i].shapes;
      if (same) source->path = fs::absolute(files[i].path).lexically_normal().string();
    }
    if (same) return draft;
    say(quiet, fmt::format("{} holds the times of another model and is not used", path));
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Whether times that were kept still hold, with a sentence.
bool still_holds(const ProblemDraft& kept, ProfileRequest request, const std::string& what,
                 bool quiet) {
  const Interruption interruption;
  request.measure.stop = interruption.flag();
  try {
    const Recheck check = recheck(kept, request);
    if (!check.holds()) {
      say(quiet,
          fmt::format("{}: its time has changed by {:.0f} % since it was measured; measuring again",
                      check.what, 100 * check.drift));
    } else {
      say(quiet,
          fmt::format(
              "{}{}", what,
              check.disturbed ? "; other programs were busy, so these times are not checked" : ""));
    }
    return check.holds();
  } catch (const Stopped&) {
    throw InterruptedError("interrupted while the model was measured");
  }
}

// "kept in FILE", or why not.
std::string keep_profile(const std::string& path, const ProblemDraft& draft) {
  std::error_code failed;  // then write_whole says why
  fs::create_directories(fs::path(path).parent_path(), failed);
  try {
    write_whole(path, write_problem(draft));
  } catch (const OutputError& error) {
    return fmt::format("not kept: {}", error.what());
  }
  return fmt::format("kept in {}", path);
}

ProblemDraft profiled(ProfileRequest request, bool quiet) {
  const Interruption interruption;
  StatusLine status(!quiet);
  request.measure.stop = interruption.flag();
  request.measure.progress = [&](const std::string& what) { status.show(what); };
  std::optional<Profile> profile = profile_models(request);
  if (!profile) throw InterruptedError("interrupted while the model was measured");
  for (const std::string& note : profile->notes) say(quiet, note);
  return std::move(profile->draft);
}

ProblemFile as_file(ProblemDraft draft, const std::string& path) {
  ProblemFile file;
  file.format = "model";
  file.file = input_name(path);
  file.digest = digest_of(write_problem(draft));
  file.draft = std::move(draft);
  return file;
}

ProblemDraft estimated(const ModelFile& file, const ClusterFile& cluster,
                       const std::vector<PeakRates>& rates) {
  const BackendEntry& backend = *backend_reading(file.path);
  const auto model = read_model(runtime_named(backend.name), file);
  ProblemDraft draft =
      draft_of(model->graph(), model_name_of(file.path), source_of(file.path, file.shapes, {}));
  estimate_times(draft, model->graph(), cluster.cluster, rates);
  state_precision(draft, file.precision);
  keep_folded_together(draft, model->graph());
  return draft;
}

std::vector<PeakRates> rates_by_kind(const ClusterFile& cluster) {
  std::vector<PeakRates> rates;
  for (const DeviceKind& kind : cluster.cluster.kinds) {
    const std::optional<PeakRates> known = rates_of(cluster, kind.name);
    if (!known) {
      throw InputError(
          cluster.file, "/rates",
          fmt::format("cannot estimate times for the kind '{}': it is not in the catalogue "
                      "('placewright devices --catalogue'), and the file states no rates for it",
                      kind.name));
    }
    rates.push_back(*known);
  }
  return rates;
}

}  // namespace

std::string cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0) {
    return (fs::path(cache) / "placewright").string();
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == 0) return {};
  return (fs::path(home) / ".cache" / "placewright").string();
}

std::vector<ModelFile> with_fixed_shapes(std::vector<ModelFile> files, bool quiet) {
  const std::string chosen = fix_open_shapes(files);
  require_fixed_shapes(files);
  if (!chosen.empty()) say(quiet, printable(chosen));
  return files;
}

ProblemFile measured_problem(const std::vector<ModelFile>& given, const DeviceOptions& devices,
                             const MeasuringOptions& measuring, bool quiet) {
  ProfileRequest request;
  request.targets = devices.targets(*backend_reading(given.front().path));
  const std::vector<ModelFile> files = with_fixed_shapes(given, quiet);
  request.files = files;
  request.seconds = measuring.seconds;
  const std::string where = fmt::format("{}", fmt::join(names_of(request.targets), ", "));
  const std::string folder = cache_folder();
  const std::string kept =
      folder.empty() ? std::string{} : fmt::format("{}/profile-{}.json", folder, key_of(request));
  if (!measuring.fresh) {
    std::optional<ProblemDraft> draft = kept_profile(kept, files, quiet);
    const std::string what = fmt::format("times measured earlier on {} ({})", where, kept);
    if (draft && still_holds(*draft, request, what, quiet)) {
      return as_file(std::move(*draft), files.front().path);
    }
  }
  ProblemDraft draft = profiled(std::move(request), quiet);
  if (cost_source(draft) == CostSource::disturbed) {
    say(quiet, fmt::format("times measured now on {}; other programs disturbed the measurement, so "
                           "the times are not kept",
                           where));
  } else if (kept.empty()) {
    say(quiet, fmt::format("times measured now on {}", where));
  } else {
    say(quiet, fmt::format("times measured now on {}, {}", where, keep_profile(kept, draft)));
  }
  return as_file(std::move(draft), files.front().path);
}

ProblemFile estimated_problem(const std::vector<ModelFile>& given, const std::string& cluster_path,
                              bool quiet) {
  const ClusterFile cluster = read_cluster(cluster_path);
  const std::vector<PeakRates> rates = rates_by_kind(cluster);
  const std::vector<ModelFile> files = with_fixed_shapes(given, quiet);
  std::vector<ProblemDraft> drafts;
  for (const ModelFile& file : files) drafts.push_back(estimated(file, cluster, rates));
  say(quiet, fmt::format("times estimated for the devices of {}, not measured", cluster.file));
  ProblemDraft all = joined(std::move(drafts));
  if (files.size() > 1) all = with_objective(std::move(all), Objective::total_completion);
  ProblemFile file = as_file(std::move(all), files.front().path);
  take_places_of_cluster(file, cluster.file);
  file.warnings = cluster.warnings;
  return file;
}

}  // namespace placewright::cli
