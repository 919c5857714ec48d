#include "support/shrink.h"

#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "formats/problem_file.h"
#include "problem/part.h"

namespace placewright::testing {
namespace {

template <class Id>
std::vector<Id> all_but(std::size_t count, std::size_t left_out) {
  std::vector<Id> kept;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != left_out) kept.emplace_back(i);
  }
  return kept;
}

void round_numbers(ProblemDraft& draft) {
  const auto round = [](double& number) { number = std::ceil(number); };
  for (Op& op : draft.ops) {
    for (double& time : op.time) round(time);
  }
  for (Tensor& tensor : draft.tensors) {
    round(tensor.host_time);
    for (double& time : tensor.link_times) round(time);
    for (CutOverhead& cut : tensor.cuts) {
      round(cut.send);
      round(cut.receive);
    }
  }
  for (Device& device : draft.cluster.devices) {
    round(device.send_overhead);
    round(device.receive_overhead);
  }
  for (Link& link : draft.cluster.links) {
    round(link.latency);
    round(link.bandwidth);
  }
}

void forget_resources(ProblemDraft& draft) {
  draft.cluster.resources.clear();
  for (Device& device : draft.cluster.devices) device.uses.clear();
  for (Op& op : draft.ops) op.share.clear();
}

void forget_memory(ProblemDraft& draft) {
  for (Device& device : draft.cluster.devices) device.memory = kInfinity;
  for (Space& space : draft.cluster.spaces) space.memory = kInfinity;
}

void forget_spaces(ProblemDraft& draft) {
  draft.cluster.spaces.clear();
  for (Device& device : draft.cluster.devices) device.space = SpaceId{};
}

void forget_overheads(ProblemDraft& draft) {
  for (Device& device : draft.cluster.devices) device.send_overhead = device.receive_overhead = 0;
}

using Simplification = std::function<void(ProblemDraft&)>;

std::vector<Simplification> simplifications(const ProblemDraft& draft) {
  std::vector<Simplification> all;
  for (std::size_t i = 0; draft.ops.size() > 1 && i < draft.ops.size(); ++i) {
    all.emplace_back([i](ProblemDraft& changed) {
      const auto kept = all_but<OpId>(changed.ops.size(), i);
      const Problem whole(std::move(changed));
      changed = part_of(whole, kept);
    });
  }
  for (std::size_t i = 0; draft.cluster.devices.size() > 1 && i < draft.cluster.devices.size();
       ++i) {
    all.emplace_back([i](ProblemDraft& changed) {
      keep_devices(changed, all_but<DeviceId>(changed.cluster.devices.size(), i));
    });
  }
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    const auto place = static_cast<std::ptrdiff_t>(i);
    all.emplace_back(
        [place](ProblemDraft& changed) { changed.tensors.erase(changed.tensors.begin() + place); });
    all.emplace_back([i](ProblemDraft& changed) { changed.tensors[i].cuts.clear(); });
    all.emplace_back([i](ProblemDraft& changed) { changed.tensors[i].link_times.clear(); });
  }
  all.insert(all.end(), {forget_resources, forget_spaces, forget_memory, forget_overheads,
                         [](ProblemDraft& changed) { changed.colocated.clear(); },
                         [](ProblemDraft& changed) { changed.shared_weights.clear(); },
                         [](ProblemDraft& changed) { changed.rules = Rules{}; },
                         [](ProblemDraft& changed) {
                           for (Op& op : changed.ops) op.pinned_to = DeviceId{};
                         },
                         [](ProblemDraft& changed) {
                           for (Op& op : changed.ops) op.backward = false;
                         },
                         [](ProblemDraft& changed) {
                           for (Device& device : changed.cluster.devices) device.lanes = 1;
                         },
                         [](ProblemDraft& changed) {
                           for (Model& model : changed.models) model.arrival = 0;
                         },
                         round_numbers});
  return all;
}

}  // namespace

ProblemDraft shrunk(ProblemDraft draft, const std::function<bool(const Problem&)>& still_wrong) {
  int left = 3000;
  for (bool smaller = true; smaller && left > 0;) {
    smaller = false;
    for (const Simplification& simplify : simplifications(draft)) {
      if (--left <= 0) break;
      try {
        ProblemDraft changed = draft;
        simplify(changed);
        if (changed == draft || !still_wrong(Problem(ProblemDraft(changed)))) continue;
        draft = std::move(changed);
        smaller = true;
        break;
      } catch (const std::exception&) {
        continue;  // there is no such problem
      }
    }
  }
  return draft;
}

std::string keep_found(const ProblemDraft& draft, const std::string& name) {
  const char* const stated = std::getenv("PLACEWRIGHT_FOUND");
  const std::filesystem::path folder =
      stated != nullptr ? stated : std::filesystem::temp_directory_path();
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / (name + ".json");
  std::ofstream(path) << write_problem(draft);
  return path.string();
}

}  // namespace placewright::testing
