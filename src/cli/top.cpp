// `placewright top`: what a server does, as it happens.

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/http_get.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/record_table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/text_file.h"
#include "serving/service_report.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright top\n"
    "  placewright top 10.0.0.7:8000 --token token.txt --interval 5s\n"
    "  placewright top --once --json";

struct TopOptions {
  std::string address = "127.0.0.1:8000";
  std::string token_file;
  std::string interval = "1s";
  bool once = false;
  bool json = false;
};

// A model's report with what happened since an earlier one.
struct ModelRow {
  ModelReport now;
  double load = 0;  // share of the time that it computed
  double rate = 0;  // answers a second
};

std::vector<ModelRow> rows_of(const ServiceReport& now,
                              const std::optional<ServiceReport>& before) {
  const double seconds = now.up_seconds - (before ? before->up_seconds : 0);
  std::vector<ModelRow> rows;
  for (const ModelReport& model : now.models) {
    ModelReport old;
    if (before) {
      for (const ModelReport& each : before->models) {
        if (each.name == model.name && each.version == model.version) old = each;
      }
    }
    // Counters begin anew where a model was loaded again.
    if (old.done > model.done || old.busy_seconds > model.busy_seconds) old = {};
    ModelRow& row = rows.emplace_back(ModelRow{.now = model});
    if (seconds <= 0) continue;
    row.load = (model.busy_seconds - old.busy_seconds) / seconds;
    row.rate = static_cast<double>(model.done - old.done) / seconds;
  }
  return rows;
}

RecordTable<ModelRow> row_table() {
  const Style time = time_in(TimeUnit::milliseconds);
  const auto latency = [&](const char* title, auto summary, auto value) {
    return Field<ModelRow>{kNoKey, title, time, [=](const ModelRow& row) {
                             const LatencyRecord::Summary& of = row.now.*summary;
                             return of.requests == 0 ? Json() : Json(of.*value);
                           }};
  };
  using Summary = LatencyRecord::Summary;
  return RecordTable<ModelRow>({
      {kNoKey, "model", words(), [](const auto& row) { return row.now.name; }},
      {kNoKey, "version", words(), [](const auto& row) { return row.now.version; }},
      {kNoKey, "state", words(), [](const auto& row) { return row.now.state; }},
      {kNoKey, "own time", time, [](const auto& row) { return row.now.own_time; }},
      {kNoKey, "load", percent(), [](const auto& row) { return row.load; }},
      {kNoKey, "answers/s", number("{:.1f}"), [](const auto& row) { return row.rate; }},
      {kNoKey, "wait", count(), [](const auto& row) { return row.now.waiting; }},
      {kNoKey, "refused", count(), [](const auto& row) { return row.now.refused + row.now.late; }},
      latency("mean", &ModelReport::measured, &Summary::mean),
      latency("predicted", &ModelReport::predicted, &Summary::mean),
      latency("p99", &ModelReport::measured, &Summary::p99),
      latency("predicted", &ModelReport::predicted, &Summary::p99),
  });
}

std::string page_of(const ServiceReport& now, const std::optional<ServiceReport>& before,
                    const std::string& address) {
  const double seconds = now.up_seconds - (before ? before->up_seconds : 0);
  const double busy = now.busy_seconds - (before ? before->busy_seconds : 0);
  std::vector<std::string> running;
  for (const RunningReport& each : now.running) {
    running.push_back(fmt::format("{} on {}", printable(each.model), printable(each.cores)));
  }
  return fmt::format(
      "placewright {} at {}, up {}, {} cores busy for {}, {:.0f} MB in memory\n"
      "waiting work {}, computing: {}\n\n{}",
      printable(now.version), address, duration_text(now.up_seconds), now.cores,
      percent_text(seconds > 0 ? busy / seconds : 0), now.memory / 1e6,
      value_text(now.backlog, TimeUnit::milliseconds),
      running.empty() ? "nothing" : fmt::format("{}", fmt::join(running, ", ")),
      row_table().text(rows_of(now, before)));
}

std::string first_line_of(const std::string& path) {
  if (path.empty()) return "";
  const std::string text = read_whole(path, 4096);
  return text.substr(0, text.find_first_of("\r\n"));
}

ExitCode top(const TopOptions& options) {
  const Interruption interruption;
  const std::string token = first_line_of(options.token_file);
  const std::chrono::duration<double> interval(parse_duration("--interval", options.interval));
  const bool clears = isatty(STDOUT_FILENO) == 1 && !options.json && !options.once;
  std::optional<ServiceReport> before;
  while (true) {
    const std::string text = http_get(options.address, "/v2/report", token);
    const ServiceReport now = parse_report(text, options.address);
    if (options.json) {
      fmt::print("{}", report_text(now));
    } else {
      fmt::print("{}{}", clears ? "\x1b[H\x1b[2J" : "", page_of(now, before, options.address));
      if (!options.once && !clears) fmt::print("\n");
    }
    std::fflush(stdout);
    if (options.once) return ExitCode::success;
    before = now;
    const auto next = std::chrono::steady_clock::now() + interval;
    while (std::chrono::steady_clock::now() < next) {
      if (*interruption.flag()) return ExitCode::success;
      std::this_thread::sleep_for(
          std::min<std::chrono::duration<double>>(interval, std::chrono::milliseconds(50)));
    }
  }
}

}  // namespace

void add_top(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("top", "Show live what a server of models does");
  const auto options = std::make_shared<TopOptions>();
  verb->add_option("address", options->address, "Where the server's HTTP listens")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  verb->add_option("--token", options->token_file, "Send the token in this file")
      ->type_name("FILE");
  add_duration(*verb, "--interval", options->interval, "Time between two updates");
  verb->add_flag("--once", options->once, "Print one update, with means since the start");
  verb->add_flag("--json", options->json,
                 "Print the server's report as JSON, an object for each update");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return top(*options); }; });
}

}  // namespace placewright::cli
