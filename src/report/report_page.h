// The report: one self-contained HTML page about plans of one problem.
//
// Everything that the page shows is worked out here and written into it as one JSON object
// (report_data); the script and style sheet in the page (viewer/) draw it. The page fetches
// nothing.
//
// Size: the viewer is about 150 kB; an op takes about 150 bytes, and about 60 more for each further
// plan.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/plan_file.h"
#include "formats/run_file.h"
#include "problem/problem.h"

namespace placewright {

struct ReportedPlan {
  std::string label;                // how the page calls it; unique
  PlanFile file;                    // with a plan whose value is known
  const Problem* problem;           // as the plan sees it, with its objective; outlives this
  std::optional<RunFile> run = {};  // of this plan on the real devices
};

// The JSON object. There is at least one plan. Their problems differ in objective and rules alone.
std::string report_data(std::span<const ReportedPlan> plans);

// The page. Names may hold anything: inside the page's JSON no '<' is left for a parser of HTML.
std::string report_page(std::span<const ReportedPlan> plans);

// The page as built from viewer/, with a mark where the data go (page_template.cpp.in).
std::string_view page_template();

}  // namespace placewright
