#include "cli/trace_input.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "formats/trace_file.h"
#include "problem/join.h"

namespace placewright::cli {
namespace {

void check_arrivals(const std::string& path, const Problem& catalogue, const ArrivalTrace& trace) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < trace.arrivals.size(); ++i) {
    const TraceArrival& arrival = trace.arrivals[i];
    const auto& models = catalogue.draft().models;
    if (std::ranges::find(models, arrival.model, &Model::name) == models.end()) {
      std::vector<std::string> known;
      for (const Model& model : models) known.push_back(model.name);
      throw InputError(path, fmt::format("/arrivals/{}/model", i),
                       fmt::format("no model is called '{}', there is: {}", arrival.model,
                                   fmt::join(known, ", ")));
    }
    if (!names.insert(arrival.name).second) {
      throw InputError(path, fmt::format("/arrivals/{}/name", i),
                       fmt::format("two arrivals are called '{}'", arrival.name));
    }
  }
}

}  // namespace

Problem read_catalogue(const std::vector<std::string>& paths, const std::string& cluster,
                       const OutputOptions& output) {
  std::vector<ProblemDraft> drafts;
  for (const std::string& path : paths) {
    ReadOptions reading;
    reading.objective = Objective::total_completion;
    reading.cluster = cluster;
    ProblemFile file = read_problem(path, reading);
    output.warn(file.warnings);
    drafts.push_back(build_problem(std::move(file)).draft());
  }
  try {
    return Problem(joined(std::move(drafts)));
  } catch (const std::invalid_argument& error) {
    throw InputError(paths.front(), "", error.what());
  }
}

PlayedTrace read_trace(std::string_view text, const std::string& path, const std::string& cluster,
                       const OutputOptions& output) {
  TraceFile file = parse_trace(text, path);
  output.warn(file.warnings);
  for (const std::string& model : file.models) require_that_it_ends(model);
  if (cluster.empty()) require_that_it_ends(file.cluster);
  Problem catalogue = read_catalogue(file.models, cluster.empty() ? file.cluster : cluster, output);
  check_arrivals(input_name(path), catalogue, file.trace);
  return {std::move(catalogue), std::move(file.trace)};
}

}  // namespace placewright::cli
