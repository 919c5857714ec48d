#include "cli/profile_summary.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/text.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr TimeUnit kUnit = TimeUnit::milliseconds;

std::string runs_text(const Measured& runs) {
  return fmt::format("{} of {}", runs.kept, runs.kept + runs.rejected);
}

std::string bandwidth_text(double bytes_per_millisecond) {
  return bytes_per_millisecond < kInfinity ? fmt::format("{:.2f} GB/s", bytes_per_millisecond / 1e6)
                                           : "unlimited";
}

std::string validity(const std::string& doubt, bool watched) {
  if (!doubt.empty()) return "NO: " + doubt;
  return watched ? "yes" : "cannot tell";
}

std::string crowded_text(const KindProfile& kind) {
  const bool measured = kind.beside_busy_cores || kind.in_turn;
  return measured ? fmt::format("{:.3f}", kind.loaded()) : "-";
}

// Nothing was cut where the model runs whole, or no border was measured.
std::string cut_text(const CutCost& cut) {
  return cut.trials.empty() ? "-" : value_text(cut.per_transfer(), kUnit);
}

Json runs_json(const Measured& runs) {
  return {
      {"median", runs.median},     {"spread", runs.spread()},         {"kept", runs.kept},
      {"rejected", runs.rejected}, {"valid", doubt_of(runs).empty()}, {"watched", runs.watched}};
}

Json loading_json(const Loading& loading) {
  return {{"factor", loading.factor},     {"by_op", loading.by_op},
          {"error", loading.error},       {"error_of_the_other", loading.rejected},
          {"segments", loading.segments}, {"latency", runs_json(loading.latency)}};
}

Json kind_json(const KindProfile& kind) {
  Json trials = Json::array();
  for (const auto& trial : kind.cut.trials) {
    trials.push_back({{"segments", trial.segments},
                      {"transfers", trial.transfers},
                      {"bytes", trial.bytes},
                      {"predicted", trial.predicted},
                      {"time", runs_json(trial.time)}});
  }
  Json document = {{"kind", kind.kind},
                   {"device", kind.device},
                   {"precision", name_of(kind.precision)},
                   {"latency", runs_json(kind.latency)},
                   {"scale", kind.scale},
                   {"executed", kind.executed},
                   {"unsupported", kind.unsupported}};
  if (kind.beside_busy_cores) document["beside_busy_cores"] = loading_json(*kind.beside_busy_cores);
  if (kind.in_turn) {
    document["in_turn"] = {{"factor", kind.in_turn->factor()},
                           {"first", runs_json(kind.in_turn->first)},
                           {"again", runs_json(kind.in_turn->again)}};
  }
  document["cut"] = {{"per_transfer", kind.cut.per_transfer()},
                     {"call", kind.cut.groups.call},
                     {"error", kind.cut.error()},
                     {"interpolated", !kind.cut.trials.empty() && !kind.cut.apart},
                     {"whole", runs_json(kind.cut.whole)}};
  if (kind.cut.apart) document["cut"]["apart"] = runs_json(*kind.cut.apart);
  document["cut"]["trials"] = std::move(trials);
  return document;
}

Json link_json(const LinkProfile& link) {
  Json points = Json::array();
  for (const auto& point : link.cost.points) {
    points.push_back({{"bytes", point.bytes}, {"time", point.milliseconds}});
  }
  return {{"from", link.from},
          {"to", link.to},
          {"latency", link.cost.latency},
          {"bandwidth", finite_or_null(link.cost.bandwidth)},
          {"error", link.cost.error},
          {"kept", link.cost.kept},
          {"rejected", link.cost.rejected},
          {"watched", link.cost.watched},
          {"points", std::move(points)}};
}

}  // namespace

std::string profile_text(const Profile& profile) {
  TextTable models({{"model"},
                    {"ops", Align::right},
                    {"fused", Align::right},
                    {"kind"},
                    {"precision"},
                    {"latency", Align::right},
                    {"spread", Align::right},
                    {"runs kept", Align::right},
                    {"scale", Align::right},
                    {"beside others", Align::right},
                    {"a cut", Align::right},
                    {"valid"}});
  for (const ModelProfile& model : profile.models) {
    for (const KindProfile& kind : model.kinds) {
      models.add({model.name, fmt::format("{}", model.ops), fmt::format("{}", model.fused),
                  kind.kind, std::string(name_of(kind.precision)),
                  value_text(kind.latency.median, kUnit), percent_text(kind.latency.spread()),
                  runs_text(kind.latency), fmt::format("{:.3f}", kind.scale), crowded_text(kind),
                  cut_text(kind.cut), validity(kind.doubt(), kind.latency.watched)});
    }
  }
  if (profile.links.empty()) return models.text();
  TextTable links({{"hand-over"},
                   {"latency", Align::right},
                   {"bandwidth", Align::right},
                   {"fit off by", Align::right},
                   {"valid"}});
  for (const LinkProfile& link : profile.links) {
    links.add({fmt::format("{} to {}", link.from, link.to), value_text(link.cost.latency, kUnit),
               bandwidth_text(link.cost.bandwidth), percent_text(link.cost.error),
               validity(link.cost.doubt(), link.cost.watched)});
  }
  return models.text() + "\n" + links.text();
}

Json profile_json(const Profile& profile) {
  Json document = {{"problem", profile.draft.name},   {"unit", name_of(profile.draft.unit)},
                   {"valid", profile.doubts.empty()}, {"doubts", profile.doubts},
                   {"notes", profile.notes},          {"models", Json::array()},
                   {"links", Json::array()}};
  for (const ModelProfile& model : profile.models) {
    Json kinds = Json::array();
    for (const KindProfile& kind : model.kinds) kinds.push_back(kind_json(kind));
    document["models"].push_back({{"name", model.name},
                                  {"ops", model.ops},
                                  {"fused", model.fused},
                                  {"kinds", std::move(kinds)}});
  }
  for (const LinkProfile& link : profile.links) document["links"].push_back(link_json(link));
  return document;
}

}  // namespace placewright::cli
