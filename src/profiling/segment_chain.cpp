#include "profiling/segment_chain.h"

#include <map>
#include <utility>

#include "backends/target_devices.h"

namespace placewright {

std::vector<double> ChainRuns::segment_times() const {
  if (times.empty()) return {};
  const std::vector<TimedRun> kept = with_some_kept(runs);
  std::vector<double> medians;
  for (std::size_t segment = 0; segment < times.front().size(); ++segment) {
    std::vector<double> list;
    for (std::size_t run = 0; run < kept.size(); ++run) {
      if (!kept[run].disturbed) list.push_back(times[run][segment]);
    }
    medians.push_back(median(std::move(list)));
  }
  return medians;
}

SegmentChain::SegmentChain(const NeuralModel& model, std::vector<OpGroup> segments,
                           const Target& target, const Buffers& inputs)
    : segments_(std::move(segments)) {
  std::map<TensorKey, std::pair<std::size_t, std::size_t>> made;  // segment, output
  for (const OpGroup& ops : segments_) {
    CompiledPart& part = *parts_.emplace_back(model.compile(ops, compile_options(target)));
    Request& request = *requests_.emplace_back(part.request());
    for (std::size_t i = 0; i < part.inputs().size(); ++i) {
      const TensorKey& tensor = part.inputs()[i];
      if (tensor.is_model_input()) {
        request.bind_input(i, *inputs[tensor.port]);
        continue;
      }
      const auto& [segment, output] = made.at(tensor);
      request.bind_input(i, requests_[segment]->output(output));
    }
    for (std::size_t o = 0; o < part.outputs().size(); ++o) {
      made.try_emplace(part.outputs()[o], parts_.size() - 1, o);
    }
  }
}

void SegmentChain::run() {
  for (const auto& request : requests_) request->run();
}

void SegmentChain::run_watched(RunWatch& watch, ChainRuns& runs) {
  std::vector<Clock::time_point> ends;
  ends.reserve(requests_.size() + 1);
  watch.begin();
  ends.push_back(Clock::now());
  for (const auto& request : requests_) {
    request->run();
    ends.push_back(Clock::now());
  }
  runs.runs.push_back(watch.end());
  auto& times = runs.times.emplace_back();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    times.push_back(milliseconds(ends[i + 1] - ends[i]));
  }
}

}  // namespace placewright
