#include "formats/sailor.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/input_error.h"
#include "formats/json.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

constexpr int kMostGpus = 100'000;
constexpr std::size_t kMostLayers = 100'000;

JsonDocument opened(const fs::path& path) {
  return {read_whole(path.string()), path.string()};
}

// A key that is a whole number from 1, as micro-batch sizes and degrees are.
int number_of(std::string_view key, JsonValue place) {
  int number = 0;
  for (const char digit : key) {
    if (digit < '0' || digit > '9' || number > kMostGpus) {
      place.fail(fmt::format("expected a whole number as the key, found '{}'", key));
    }
    number = number * 10 + (digit - '0');
  }
  if (number < 1) place.fail(fmt::format("expected a number from 1, found '{}'", key));
  return number;
}

// The values under the keys "0" to "n - 1".
template <class Read>
void each_layer(JsonValue layers, Read read) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    read(layers.at(std::to_string(layer)));
  }
}

// The values at x of the power law through the two entries nearest to x, layer by layer. One entry:
// as if the work were split evenly.
struct Neighbour {
  int x;
  const std::vector<double>* values;
};

std::vector<double> on_power_law(const std::vector<Neighbour>& known, int x) {
  std::vector<Neighbour> near = known;
  std::ranges::sort(near, {},
                    [&](const Neighbour& n) { return std::abs(std::log2(n.x) - std::log2(x)); });
  const Neighbour& one = near.front();
  std::vector<double> values(one.values->size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double exponent = -1;
    if (near.size() > 1 && (*one.values)[i] > 0 && (*near[1].values)[i] > 0) {
      exponent = std::log((*one.values)[i] / (*near[1].values)[i]) /
                 std::log(static_cast<double>(one.x) / near[1].x);
      exponent = std::clamp(exponent, -1.0, 1.0);
    }
    values[i] = (*one.values)[i] * std::pow(static_cast<double>(x) / one.x, exponent);
  }
  return values;
}

// The values at x on the line through the neighbours below and above; outside in proportion to x.
std::vector<double> on_line(std::vector<Neighbour> known, int x) {
  std::ranges::sort(known, {}, &Neighbour::x);
  const auto above = std::ranges::find_if(known, [&](const Neighbour& n) { return n.x > x; });
  const Neighbour& high = above == known.end() ? known.back() : *above;
  const Neighbour& low = above == known.begin() ? known.front() : *(above - 1);
  std::vector<double> values(low.values->size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at_low = (*low.values)[i];
    const double at_high = (*high.values)[i];
    values[i] = low.x == high.x ? at_low * x / low.x
                                : at_low + (at_high - at_low) * (x - low.x) / (high.x - low.x);
  }
  return values;
}

class SailorReader {
 public:
  explicit SailorReader(std::string folder)
      : folder_(std::move(folder)),
        models_(opened(folder_ / "llm_info.json")),
        cluster_(opened(folder_ / "cluster.json")),
        network_(opened(folder_ / "network" / "multizone_bandwidths_het.json")) {}

  TrainingFile problem(const SailorRequest& request);
  TrainingFile plan(const std::string& path, const SailorRequest& request);

 private:
  struct PlanGroup {
    std::string kind;
    std::string zone;
    int degree = 1;
    int gpus = 1;  // of its node that the plan has
  };
  using PlanStages = std::vector<std::vector<PlanGroup>>;

  void note(std::string text) { file_.warnings.push_back(std::move(text)); }
  void read_model(const std::string& model);
  [[nodiscard]] std::string model_with(std::size_t layers, const std::string& place) const;
  std::size_t kind_named(const std::string& name);
  std::size_t pool_of(const std::string& kind, const std::string& zone);
  void read_links();
  void read_links_between(std::size_t from, std::size_t to);
  void append_links(const NodePool& from, const NodePool& to, bool any_kind, PoolLink link,
                    std::vector<PoolLink>& found) const;

  void add_sizes(int degree);
  void add_times(std::size_t kind, int degree, int micro_batch);
  void add_micro_batch(GpuKind& kind, int degree, int micro_batch);
  void add_degree(GpuKind& kind, int degree, int micro_batch);

  std::vector<std::size_t> read_layers(JsonValue pipeline);
  PlanGroup read_group(JsonValue replica);
  PlanStages read_groups(JsonValue pipeline);
  void count_nodes(const TrainingPlan& plan, const PlanStages& groups);

  fs::path folder_;
  JsonDocument models_;
  JsonDocument cluster_;
  JsonDocument network_;
  TrainingFile file_;
};

void SailorReader::read_model(const std::string& model) {
  const auto info = models_.root().find(model);
  if (!info) {
    models_.root().fail(fmt::format("no model is called '{}'", model));
  }
  file_.problem.name = model;
  for (const auto& [degree, layers] : info->members()) {
    LayerSizes& sizes = file_.problem.sizes.emplace_back();
    sizes.degree = number_of(degree, layers);
    each_layer(layers, [&](JsonValue layer) {
      sizes.parameters.push_back(layer.at("params_floats").amount());
      sizes.activations.push_back(layer.at("act_mem_bytes").amount());
      sizes.outputs.push_back(layer.at("act_output_bytes").amount());
    });
    if (sizes.parameters.size() != file_.problem.layers()) {
      layers.fail(fmt::format("expected {} layers, as of the other degrees, found {}",
                              file_.problem.layers(), sizes.parameters.size()));
    }
  }
  if (file_.problem.layers() == 0) info->fail("expected at least one layer");
}

std::string SailorReader::model_with(std::size_t layers, const std::string& place) const {
  std::vector<std::string> found;
  for (const auto& [model, info] : models_.root().members()) {
    if ((*info.members().begin()).value.size() == layers) found.emplace_back(model);
  }
  if (found.size() == 1) return found.front();
  throw InputError(place, "",
                   found.empty() ? fmt::format("no model has {} layers; give --model", layers)
                                 : fmt::format("{} have {} layers; give --model",
                                               fmt::join(found, ", "), layers));
}

// Reads the kind's profile at its first use.
std::size_t SailorReader::kind_named(const std::string& name) {
  std::vector<GpuKind>& kinds = file_.problem.kinds;
  const auto known = std::ranges::find(kinds, name, &GpuKind::name);
  if (known != kinds.end()) return static_cast<std::size_t>(known - kinds.begin());
  const JsonDocument profile = opened(folder_ / "profiles" / file_.problem.name / (name + ".json"));
  GpuKind& kind = kinds.emplace_back();
  kind.name = name;
  kind.memory = cluster_.root().at(name).at("mem_per_gpu").amount();
  for (const auto& [micro_batch, degrees] : profile.root().members()) {
    for (const auto& [degree, layers] : degrees.members()) {
      LayerTimes& times = kind.times.emplace_back();
      times.micro_batch = number_of(micro_batch, degrees);
      times.degree = number_of(degree, layers);
      if (layers.size() != file_.problem.layers()) {
        layers.fail(
            fmt::format("expected {} layers, found {}", file_.problem.layers(), layers.size()));
      }
      each_layer(layers, [&](JsonValue layer) {
        if (layer.elements().size() != 3) layer.fail("expected [forward, backward, update]");
        auto number = layer.elements().begin();
        for (auto* pass : {&times.forward, &times.backward, &times.update}) {
          pass->push_back((*number).amount());
          ++number;
        }
      });
      add_sizes(times.degree);
    }
  }
  if (kind.times.empty()) profile.root().fail("expected at least one micro-batch size");
  std::ranges::sort(kind.times, {}, [](const LayerTimes& entry) {
    return std::pair(entry.degree, entry.micro_batch);
  });
  return kinds.size() - 1;
}

std::size_t SailorReader::pool_of(const std::string& kind, const std::string& zone) {
  std::vector<NodePool>& pools = file_.problem.pools;
  const std::size_t number = kind_named(kind);
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    if (pools[pool].kind == number && pools[pool].zone == zone) return pool;
  }
  const JsonValue gpus = cluster_.root().at(kind).at("gpus_per_node");
  pools.push_back({number, zone, static_cast<int>(gpus.integer(1, kMostGpus)), 1});
  return pools.size() - 1;
}

// What was measured from nodes of the one pool to nodes of the other; `any_kind`: between any kinds
// in the two zones.
void SailorReader::append_links(const NodePool& from, const NodePool& to, bool any_kind,
                                PoolLink link, std::vector<PoolLink>& found) const {
  const auto of_kind = [&](std::string_view kind, const NodePool& pool) {
    return any_kind || kind == file_.problem.kinds[pool.kind].name;
  };
  const auto zone = network_.root().find(from.zone);
  if (!zone) return;
  for (const auto& [kind, counts] : zone->members()) {
    if (!of_kind(kind, from)) continue;
    for (const auto& [gpus, zones] : counts.members()) {
      const auto other_zone = zones.find(to.zone);
      if (!other_zone) continue;
      for (const auto& [other_kind, other_counts] : other_zone->members()) {
        if (!of_kind(other_kind, to)) continue;
        for (const auto& [other_gpus, fit] : other_counts.members()) {
          link.gpus = std::max(number_of(gpus, zones), number_of(other_gpus, fit));
          auto part = fit.elements().begin();
          if (fit.elements().size() != 2 || (*part).elements().size() != 3) {
            fit.fail("expected [[a, b, c], best bandwidth]");
          }
          auto number = (*part).elements().begin();
          for (double* member : {&link.a, &link.b, &link.c}) {
            *member = (*number).number();
            ++number;
          }
          ++part;
          link.best = (*part).amount();
          found.push_back(link);
        }
      }
    }
  }
}

void SailorReader::read_links_between(std::size_t from, std::size_t to) {
  const NodePool& one = file_.problem.pools[from];
  const NodePool& other = file_.problem.pools[to];
  std::vector<PoolLink> found;
  append_links(one, other, false, {.from = from, .to = to}, found);
  if (from != to) append_links(other, one, false, {.from = to, .to = from}, found);
  if (found.empty()) {
    append_links(one, other, true, {.from = from, .to = to}, found);
    if (found.empty()) {
      network_.root().fail(
          fmt::format("nothing was measured between zones '{}' and '{}'", one.zone, other.zone));
    }
    found = {*std::ranges::min_element(found, {}, &PoolLink::best)};
    note(fmt::format("no bandwidth between {} and {}: taken as the slowest between these zones",
                     pool_name(file_.problem, from), pool_name(file_.problem, to)));
  }
  file_.problem.links.insert(file_.problem.links.end(), found.begin(), found.end());
}

void SailorReader::read_links() {
  for (std::size_t from = 0; from < file_.problem.pools.size(); ++from) {
    for (std::size_t to = from; to < file_.problem.pools.size(); ++to) {
      read_links_between(from, to);
    }
  }
}

void SailorReader::add_sizes(int degree) {
  TrainingProblem& problem = file_.problem;
  if (problem.sizes_of(degree) != nullptr) return;
  const auto estimated = [&](std::vector<double> LayerSizes::*member) {
    std::vector<Neighbour> known;
    for (const LayerSizes& entry : problem.sizes) known.push_back({entry.degree, &(entry.*member)});
    return on_power_law(known, degree);
  };
  LayerSizes sizes;
  sizes.degree = degree;
  sizes.parameters = estimated(&LayerSizes::parameters);
  sizes.activations = estimated(&LayerSizes::activations);
  sizes.outputs = estimated(&LayerSizes::outputs);
  problem.sizes.push_back(std::move(sizes));
  note(
      fmt::format("no sizes of {} on {} GPUs: estimated from other degrees", problem.name, degree));
}

void SailorReader::add_micro_batch(GpuKind& kind, int degree, int micro_batch) {
  const auto estimated = [&](std::vector<double> LayerTimes::*pass) {
    std::vector<Neighbour> known;
    for (const LayerTimes& entry : kind.times) {
      if (entry.degree == degree) known.push_back({entry.micro_batch, &(entry.*pass)});
    }
    return on_line(known, micro_batch);
  };
  LayerTimes times{
      degree, micro_batch, estimated(&LayerTimes::forward), estimated(&LayerTimes::backward), {}};
  // An update does not depend on the samples.
  times.update = std::ranges::find(kind.times, degree, &LayerTimes::degree)->update;
  kind.times.push_back(std::move(times));
  note(
      fmt::format("no times of {} on {} x {} with micro-batches of {}: estimated from other "
                  "micro-batch sizes",
                  file_.problem.name, degree, kind.name, micro_batch));
}

void SailorReader::add_degree(GpuKind& kind, int degree, int micro_batch) {
  const auto estimated = [&](std::vector<double> LayerTimes::*pass) {
    std::vector<Neighbour> known;
    for (const LayerTimes& entry : kind.times) {
      if (entry.micro_batch == micro_batch) known.push_back({entry.degree, &(entry.*pass)});
    }
    return on_power_law(known, degree);
  };
  kind.times.push_back({degree, micro_batch, estimated(&LayerTimes::forward),
                        estimated(&LayerTimes::backward), estimated(&LayerTimes::update)});
  note(fmt::format("no times of {} on {} x {}: estimated from other degrees", file_.problem.name,
                   degree, kind.name));
}

void SailorReader::add_times(std::size_t number, int degree, int micro_batch) {
  if (file_.problem.times_of(number, degree, micro_batch) != nullptr) return;
  GpuKind& kind = file_.problem.kinds[number];
  std::set<int> degrees;
  for (const LayerTimes& entry : kind.times) degrees.insert(entry.degree);
  if (degrees.contains(degree)) {
    add_micro_batch(kind, degree, micro_batch);
    return;
  }
  for (const int known : degrees) {
    if (file_.problem.times_of(number, known, micro_batch) == nullptr) {
      add_micro_batch(kind, known, micro_batch);
    }
  }
  add_sizes(degree);
  add_degree(kind, degree, micro_batch);
}

TrainingFile SailorReader::problem(const SailorRequest& request) {
  read_model(request.model);
  file_.problem.batch = request.batch;
  for (const SailorNodes& nodes : request.nodes) {
    const std::string zone =
        nodes.zone.empty() ? std::string(cluster_.root().at("zone").text()) : nodes.zone;
    file_.problem.pools[pool_of(nodes.kind, zone)].count = nodes.count;
  }
  read_links();
  return std::move(file_);
}

// The number of layers of each stage. Layers follow each other, whatever their numbers: one
// published plan has 29 where it means 19.
std::vector<std::size_t> SailorReader::read_layers(JsonValue pipeline) {
  std::vector<std::size_t> counts;
  std::int64_t next = 0;
  bool consecutive = true;
  for (const JsonValue stage : pipeline.at("layers_per_stage").elements()) {
    if (stage.elements().size() == 0) stage.fail("a stage without layers");
    for (const JsonValue layer : stage.elements()) {
      consecutive = consecutive && layer.integer(0, kMostLayers) == next;
      ++next;
    }
    counts.push_back(stage.elements().size());
  }
  if (!consecutive) {
    note("layers_per_stage does not number all layers in order: read as consecutive layers");
  }
  return counts;
}

SailorReader::PlanGroup SailorReader::read_group(JsonValue replica) {
  if (replica.elements().size() != 2) replica.fail("expected [[[GPU, GPUs, zone]], degree]");
  auto part = replica.elements().begin();
  const JsonValue nodes = *part;
  ++part;
  PlanGroup group{.degree = static_cast<int>((*part).integer(1, kMostGpus))};
  double slowest = -1;
  std::int64_t gpus = 0;
  for (const JsonValue node : nodes.elements()) {
    if (node.elements().size() != 3) node.fail("expected [GPU, GPUs, zone]");
    auto field = node.elements().begin();
    const std::string kind((*field).text());
    ++field;
    gpus += (*field).integer(1, kMostGpus);
    ++field;
    const std::vector<double>& forward =
        file_.problem.kinds[kind_named(kind)].times.front().forward;
    const double time = std::accumulate(forward.begin(), forward.end(), 0.0);
    if (time <= slowest) continue;
    slowest = time;
    group.kind = kind;
    group.zone = (*field).text();
  }
  group.gpus = std::max(group.degree, static_cast<int>(gpus));
  if (slowest < 0) nodes.fail("expected at least one [GPU, GPUs, zone]");
  if (nodes.elements().size() > 1) {
    note(fmt::format("a group of several nodes counts as {} of its slowest GPU, {}", group.degree,
                     group.kind));
  } else if (gpus != group.degree) {
    note(fmt::format("a replica of {} GPUs with tensor parallelism {} counts as a group of {}",
                     gpus, group.degree, group.degree));
  }
  return group;
}

SailorReader::PlanStages SailorReader::read_groups(JsonValue pipeline) {
  PlanStages stages;
  for (const JsonValue stage : pipeline.at("tmp_per_stage").elements()) {
    if (stage.elements().size() == 0) stage.fail("a stage without replicas");
    auto& groups = stages.emplace_back();
    for (const JsonValue replica : stage.elements()) groups.push_back(read_group(replica));
  }
  return stages;
}

// A plan's nodes are as large as it says, not as in the cluster's file: it may have used a part of
// them.
void SailorReader::count_nodes(const TrainingPlan& plan, const PlanStages& groups) {
  std::vector<std::vector<int>> degrees(file_.problem.pools.size());
  for (NodePool& pool : file_.problem.pools) pool.gpus = 1;
  for (const auto& stage : groups) {
    for (const PlanGroup& group : stage) {
      NodePool& pool = file_.problem.pools[pool_of(group.kind, group.zone)];
      pool.gpus = std::max(pool.gpus, group.gpus);
    }
  }
  for (const TrainingStage& stage : plan.stages) {
    for (const StageReplica& replica : stage.replicas) {
      degrees[replica.pool].push_back(replica.degree);
    }
  }
  for (std::size_t p = 0; p < degrees.size(); ++p) {
    NodePool& pool = file_.problem.pools[p];
    pool.count = nodes_needed(degrees[p], pool.gpus);
  }
}

TrainingFile SailorReader::plan(const std::string& path, const SailorRequest& request) {
  const JsonDocument document(read_whole(path), input_name(path));
  const JsonValue root = document.root();
  const JsonValue pipelines = root.at("pipeline_list");
  if (pipelines.elements().size() != 1) {
    pipelines.fail(fmt::format("expected one pipeline, found {}", pipelines.elements().size()));
  }
  const JsonValue pipeline = *pipelines.elements().begin();
  const std::vector<std::size_t> counts = read_layers(pipeline);
  const std::size_t layers = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  read_model(request.model.empty() ? model_with(layers, input_name(path)) : request.model);
  if (layers != file_.problem.layers()) {
    pipeline.at("layers_per_stage")
        .fail(fmt::format("expected the {} layers of {}, found {}", file_.problem.layers(),
                          file_.problem.name, layers));
  }
  const PlanStages groups = read_groups(pipeline);
  if (groups.size() != counts.size()) {
    pipeline.at("tmp_per_stage")
        .fail(fmt::format("expected {} stages, found {}", counts.size(), groups.size()));
  }

  TrainingAnswer& answer = file_.answer.emplace();
  answer.planner = "by-hand";
  const int most = std::numeric_limits<int>::max();
  answer.plan.micro_batch = static_cast<int>(root.at("mbs").integer(1, kMostGpus));
  const int batch = static_cast<int>(root.at("gbs").integer(1, most / 2));
  const int micro_batches = (batch + answer.plan.micro_batch - 1) / answer.plan.micro_batch;
  file_.problem.batch = micro_batches * answer.plan.micro_batch;
  if (file_.problem.batch != batch) {
    note(fmt::format("{} samples are not whole micro-batches of {}: counted as {}", batch,
                     answer.plan.micro_batch, file_.problem.batch));
  }
  std::size_t first = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    TrainingStage& stage = answer.plan.stages.emplace_back(TrainingStage{first, first + counts[s]});
    first = stage.last;
    const int replicas = static_cast<int>(groups[s].size());
    if (replicas > micro_batches) root.at("gbs").fail("fewer micro-batches than replicas");
    for (int r = 0; r < replicas; ++r) {
      const PlanGroup& group = groups[s][static_cast<std::size_t>(r)];
      const std::size_t pool = pool_of(group.kind, group.zone);
      add_times(file_.problem.pools[pool].kind, group.degree, answer.plan.micro_batch);
      stage.replicas.push_back(
          {pool, group.degree, micro_batches / replicas + (r < micro_batches % replicas ? 1 : 0)});
    }
  }
  count_nodes(answer.plan, groups);
  read_links();
  if (const auto measured = root.find("real")) answer.measured = measured->amount();
  if (const auto measured = root.find("max_mem")) answer.measured_memory = measured->amount();
  return std::move(file_);
}

}  // namespace

TrainingFile read_sailor_problem(const std::string& folder, const SailorRequest& request) {
  return SailorReader(folder).problem(request);
}

TrainingFile read_sailor_plan(const std::string& folder, const std::string& plan_path,
                              const SailorRequest& request) {
  return SailorReader(folder).plan(plan_path, request);
}

}  // namespace placewright
