#include "running/run_log.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "problem/time_unit.h"

namespace placewright {
namespace {

// Stretches of a pipeline that count, or are left out, as a whole.
constexpr std::size_t kBlocks = 30;

// By sample and model: when its last segment ended, since the sample's begin.
struct SampleEnds {
  std::vector<double> begin;
  std::vector<std::vector<double>> end;
};

SampleEnds ends_of(const Problem& problem, const std::vector<Segment>& segments,
                   const std::vector<WorkerLog>& logs, std::size_t samples) {
  SampleEnds ends;
  ends.begin.assign(samples, std::numeric_limits<double>::infinity());
  ends.end.assign(samples, std::vector<double>(problem.model_count(), 0));
  for (const WorkerLog& log : logs) {
    for (std::size_t sample = 0; sample < samples; ++sample) {
      ends.begin[sample] = std::min(ends.begin[sample], log.begin[sample]);
    }
  }
  for (const WorkerLog& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample >= samples) continue;
      double& end = ends.end[event.sample][segments[event.segment].model.index()];
      end = std::max(end, event.end - ends.begin[event.sample]);
    }
  }
  return ends;
}

double value_of(const Problem& problem, const std::vector<double>& ends) {
  const double unit = milliseconds_in(problem.unit());
  double value = 0;
  for (const ModelId id : problem.models()) {
    const Model& model = problem.model(id);
    const double arrival = model.arrival * unit;
    const double end = std::max(ends[id.index()], arrival);
    if (problem.objective() == Objective::total_completion) {
      value += model.weight * (end - arrival);
    } else {
      value = std::max(value, end);
    }
  }
  return value;
}

// Times of segments and devices over the samples that count.
void summarise_segments(const Problem& problem, const std::vector<Segment>& segments,
                        const std::vector<WorkerLog>& logs, std::size_t first,
                        const std::vector<char>& disturbed, RunResult& result) {
  std::vector<std::vector<double>> times(segments.size());
  std::vector<int> rejected(segments.size(), 0);
  result.busy.assign(problem.device_count(), 0);
  std::size_t counted = 0;
  for (std::size_t i = first; i < disturbed.size(); ++i) counted += disturbed[i] ? 0 : 1;
  for (const WorkerLog& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample < first || event.sample >= disturbed.size()) continue;
      if (disturbed[event.sample]) {
        ++rejected[event.segment];
        continue;
      }
      times[event.segment].push_back(event.end - event.start);
      result.busy[event.device] += (event.end - event.start) / static_cast<double>(counted);
    }
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    result.segment_times.push_back(measured(std::move(times[i]), rejected[i]));
  }
}

// The events of some samples, counted from `origin`.
std::vector<SegmentEvent> events_of(const std::vector<WorkerLog>& logs, std::size_t first,
                                    std::size_t count, double origin) {
  std::vector<SegmentEvent> events;
  for (const WorkerLog& log : logs) {
    for (SegmentEvent event : log.events) {
      if (event.sample < first || event.sample >= first + count) continue;
      event.start -= origin;
      event.end -= origin;
      events.push_back(event);
    }
  }
  return events;
}

}  // namespace

Measured measured(std::vector<double> kept, int rejected) {
  Measured result;
  result.kept = static_cast<int>(kept.size());
  result.rejected = rejected;
  if (kept.empty()) return result;
  std::sort(kept.begin(), kept.end());
  const auto quantile = [&](double share) {
    return kept[static_cast<std::size_t>(share * static_cast<double>(kept.size() - 1) + 0.5)];
  };
  result.median = quantile(0.5);
  result.low = quantile(0.1);
  result.high = quantile(0.9);
  return result;
}

std::size_t complete_samples(const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs) {
  std::vector<std::size_t> runs;
  for (const WorkerLog& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample >= runs.size()) runs.resize(event.sample + 1, 0);
      ++runs[event.sample];
    }
  }
  std::size_t complete = 0;
  while (complete < runs.size() && runs[complete] == segments.size()) ++complete;
  return complete;
}

RunResult summarise_schedule(const Problem& problem, const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs, std::size_t first) {
  RunResult result;
  const std::size_t complete = complete_samples(segments, logs);
  first = std::min(first, complete > 0 ? complete - 1 : 0);
  const SampleEnds ends = ends_of(problem, segments, logs, complete);

  std::vector<char> disturbed(complete, 0);
  std::vector<std::pair<double, std::size_t>> kept;  // value, sample
  for (std::size_t sample = first; sample < complete; ++sample) {
    const double latency = *std::max_element(ends.end[sample].begin(), ends.end[sample].end());
    for (const WorkerLog& log : logs) disturbed[sample] |= log.lost[sample] > kDisturbed * latency;
    if (!disturbed[sample]) kept.emplace_back(value_of(problem, ends.end[sample]), sample);
  }
  const int rejected = static_cast<int>(complete - first - kept.size());
  std::vector<double> values;
  for (const auto& [value, sample] : kept) values.push_back(value);
  result.value = measured(std::move(values), rejected);
  for (const ModelId model : problem.models()) {
    std::vector<double> times;
    for (const auto& [value, sample] : kept) times.push_back(ends.end[sample][model.index()]);
    result.completions.push_back(measured(std::move(times), rejected));
  }
  summarise_segments(problem, segments, logs, first, disturbed, result);
  if (!kept.empty()) {
    const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(kept.size() / 2);
    std::nth_element(kept.begin(), middle, kept.end());
    result.events = events_of(logs, middle->second, 1, ends.begin[middle->second]);
  }
  return result;
}

RunResult summarise_pipeline(const Problem& problem, const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs, std::size_t first,
                             std::size_t stretch) {
  RunResult result;
  const std::size_t complete = complete_samples(segments, logs);
  first = std::min(first, complete);
  std::vector<double> finished(complete, 0);
  for (const WorkerLog& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample < complete) {
        finished[event.sample] = std::max(finished[event.sample], event.end);
      }
    }
  }
  const std::size_t block = std::max<std::size_t>(1, (complete - first) / kBlocks);
  std::vector<char> disturbed(complete, 0);
  std::vector<double> values;
  int rejected = 0;
  // The first block needs a sample before it to count from.
  for (std::size_t begin = std::max<std::size_t>(first, 1); begin + block <= complete;
       begin += block) {
    const double length = finished[begin + block - 1] - finished[begin - 1];
    bool lost = false;
    for (const WorkerLog& log : logs) {
      const auto from = log.lost.begin() + static_cast<std::ptrdiff_t>(begin);
      lost |= std::accumulate(from, from + static_cast<std::ptrdiff_t>(block), 0.0) >
              kDisturbed * length;
    }
    if (lost) {
      ++rejected;
      std::fill_n(disturbed.begin() + static_cast<std::ptrdiff_t>(begin), block, 1);
    } else {
      values.push_back(length / static_cast<double>(block));
    }
  }
  result.value = measured(std::move(values), rejected);
  summarise_segments(problem, segments, logs, first, disturbed, result);

  const std::size_t middle = first + (complete - first) / 2;
  double origin = std::numeric_limits<double>::infinity();
  result.events = events_of(logs, middle, std::max<std::size_t>(8, stretch), 0);
  for (const SegmentEvent& event : result.events) origin = std::min(origin, event.start);
  for (SegmentEvent& event : result.events) {
    event.start -= origin;
    event.end -= origin;
  }
  return result;
}

}  // namespace placewright
