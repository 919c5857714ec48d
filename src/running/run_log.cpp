#include "running/run_log.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "problem/time_unit.h"

namespace placewright {

bool Remembered::has(std::size_t sample) const {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15U;  // its fractional part times 2^64
  const std::uint64_t fraction = (sample / stretch_) * kGoldenRatio;
  return halvings_ == 0 || fraction >> (64U - halvings_) == 0;
}

Remembered Remembered::joined(const Remembered& other) const {
  return halvings_ < other.halvings_ ? other : *this;
}

void SampleBlocks::add(std::size_t sample, double end, double lost) {
  while (sample / size_ >= kMostBlocks) widen(2 * size_);
  if (sample / size_ >= blocks_.size()) blocks_.resize(sample / size_ + 1);
  Block& block = blocks_[sample / size_];
  block.lost += lost;
  block.end = std::max(block.end, end);
}

void SampleBlocks::widen(std::size_t size) {
  for (; size_ < size; size_ *= 2) {
    std::vector<Block> joined((blocks_.size() + 1) / 2);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      joined[i / 2].lost += blocks_[i].lost;
      joined[i / 2].end = std::max(joined[i / 2].end, blocks_[i].end);
    }
    blocks_ = std::move(joined);
  }
}

void WorkerLog::add(const StepEvent& event) {
  if (!remembered_.has(event.sample)) return;
  if (events_.size() >= kMostEvents) forget();
  if (remembered_.has(event.sample)) events_.push_back(event);
}

void WorkerLog::forget() {
  remembered_.halve();
  std::erase_if(events_, [&](const StepEvent& event) { return !remembered_.has(event.sample); });
  std::erase_if(samples_, [&](const Sample& sample) { return !remembered_.has(sample.number); });
}

void WorkerLog::end_sample(const Sample& sample) {
  if (remembered_.has(sample.number)) samples_.push_back(sample);
  completed_ = sample.number + 1;
}

void WorkerLog::end_step(std::size_t sample, double end, double lost) {
  if (sample >= first_) {
    blocks_.add(sample - first_, end, lost);
  } else {
    end_before_first_ = std::max(end_before_first_, end);
  }
}

std::size_t complete_samples(const std::vector<WorkerLog>& logs) {
  std::size_t complete = std::numeric_limits<std::size_t>::max();
  for (const WorkerLog& log : logs) complete = std::min(complete, log.completed());
  return logs.empty() ? 0 : complete;
}

namespace {

Remembered remembered_by_all(const std::vector<WorkerLog>& logs) {
  Remembered remembered = logs.front().remembered();
  for (const WorkerLog& log : logs) remembered = remembered.joined(log.remembered());
  return remembered;
}

// A sample of a schedule.
struct SampleTimes {
  double begin = std::numeric_limits<double>::infinity();
  std::vector<double> ends;  // by model: of its last segment, since the begin
  std::vector<double> lost;  // by worker
  bool disturbed = false;

  [[nodiscard]] double latency() const { return *std::max_element(ends.begin(), ends.end()); }
};

// The samples that count and that all workers remember, by number.
std::map<std::size_t, SampleTimes> samples_of(const Problem& problem,
                                              const std::vector<Segment>& segments,
                                              const std::vector<WorkerLog>& logs, std::size_t first,
                                              std::size_t complete) {
  const Remembered remembered = remembered_by_all(logs);
  std::map<std::size_t, SampleTimes> samples;
  for (const WorkerLog& log : logs) {
    for (const WorkerLog::Sample& sample : log.samples()) {
      if (sample.number < first || sample.number >= complete) continue;
      if (!remembered.has(sample.number)) continue;
      SampleTimes& times = samples[sample.number];
      times.begin = std::min(times.begin, sample.begin);
      times.lost.push_back(sample.lost);
    }
  }
  for (auto& [number, times] : samples) times.ends.assign(problem.model_count(), 0);
  for (const WorkerLog& log : logs) {
    for (const StepEvent& event : log.events()) {
      const auto found = samples.find(event.sample);
      if (found == samples.end() || event.step >= segments.size()) continue;
      double& end = found->second.ends[segments[event.step].model.index()];
      end = std::max(end, event.end - found->second.begin);
    }
  }
  for (auto& [number, times] : samples) {
    times.disturbed =
        *std::max_element(times.lost.begin(), times.lost.end()) > kDisturbed * times.latency();
  }
  return samples;
}

// What became of a sample.
enum class Standing { counts, disturbed, outside };

// Times of steps, and of devices over the samples that count; over the disturbed ones if none does.
template <class StandingOf>
void summarise_steps(const Problem& problem, std::size_t segments, std::size_t copies,
                     const std::vector<WorkerLog>& logs, StandingOf standing, RunResult& result) {
  struct Group {
    explicit Group(std::size_t steps, std::size_t devices) : times(steps), busy(devices, 0) {}

    std::vector<std::vector<double>> times;  // by step
    Table<DeviceId, double> busy;
    std::set<std::size_t> samples;
  };
  Group counted(segments + copies, problem.device_count());
  Group disturbed = counted;
  for (const WorkerLog& log : logs) {
    for (const StepEvent& event : log.events()) {
      const Standing found = standing(event.sample);
      if (found == Standing::outside) continue;
      Group& group = found == Standing::disturbed ? disturbed : counted;
      group.times[event.step].push_back(event.end - event.start);
      group.samples.insert(event.sample);
      if (event.step < segments) group.busy[event.device] += event.end - event.start;
    }
  }
  Group& shown = counted.samples.empty() ? disturbed : counted;
  result.busy = std::move(shown.busy);
  for (double& busy : result.busy) {
    busy /= static_cast<double>(std::max<std::size_t>(shown.samples.size(), 1));
  }
  for (std::size_t step = 0; step < counted.times.size(); ++step) {
    auto& list = step < segments ? result.segment_times : result.copy_times;
    list.push_back(measured(std::move(counted.times[step]), disturbed.times[step]));
  }
}

// The events of some samples, counted from `origin`.
std::vector<StepEvent> events_of(const std::vector<WorkerLog>& logs, std::size_t first,
                                 std::size_t count, double origin) {
  std::vector<StepEvent> events;
  for (const WorkerLog& log : logs) {
    for (StepEvent event : log.events()) {
      if (event.sample < first || event.sample >= first + count) continue;
      event.start -= origin;
      event.end -= origin;
      events.push_back(event);
    }
  }
  return events;
}

// The remembered stretch nearest to the middle of those that lie between the two samples;
// `complete` if there is none.
std::size_t middle_stretch(const Remembered& remembered, std::size_t first, std::size_t complete) {
  const std::size_t length = remembered.stretch();
  const auto middle = static_cast<double>(first + complete) / 2;
  std::size_t best = complete;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t begin = (first + length - 1) / length * length; begin + length <= complete;
       begin += length) {
    const double distance =
        std::abs(static_cast<double>(begin) + static_cast<double>(length) / 2 - middle);
    if (distance >= nearest || !remembered.has(begin)) continue;
    nearest = distance;
    best = begin;
  }
  return best;
}

}  // namespace

double value_of_ends(const Problem& problem, const std::vector<double>& ends) {
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

RunResult summarise_schedule(const Problem& problem, const std::vector<Segment>& segments,
                             std::size_t copies, const std::vector<WorkerLog>& logs,
                             std::size_t first) {
  RunResult result;
  const std::size_t complete = complete_samples(logs);
  first = std::min(first, complete > 0 ? complete - 1 : 0);
  const auto samples = samples_of(problem, segments, logs, first, complete);

  // Of the samples that count, and of the disturbed ones.
  const auto summary = [&](const auto& number_of) {
    std::vector<double> counting;
    std::vector<double> disturbed;
    for (const auto& [number, times] : samples) {
      (times.disturbed ? disturbed : counting).push_back(number_of(times));
    }
    return measured(std::move(counting), disturbed);
  };
  result.samples = samples.size();
  result.value = summary([&](const auto& times) { return value_of_ends(problem, times.ends); });
  for (const ModelId model : problem.models()) {
    result.completions.push_back(
        summary([&](const auto& times) { return times.ends[model.index()]; }));
  }
  std::vector<std::pair<double, std::size_t>> kept;  // value, sample
  for (const auto& [number, times] : samples) {
    if (!times.disturbed) kept.emplace_back(value_of_ends(problem, times.ends), number);
  }
  const auto standing = [&](std::size_t sample) {
    const auto found = samples.find(sample);
    if (found == samples.end()) return Standing::outside;
    return found->second.disturbed ? Standing::disturbed : Standing::counts;
  };
  summarise_steps(problem, segments.size(), copies, logs, standing, result);
  if (!kept.empty()) {
    const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(kept.size() / 2);
    std::nth_element(kept.begin(), middle, kept.end());
    result.events = events_of(logs, middle->second, 1, samples.at(middle->second).begin);
  }
  return result;
}

RunResult summarise_pipeline(const Problem& problem, const std::vector<Segment>& segments,
                             std::size_t copies, const std::vector<WorkerLog>& logs,
                             std::size_t first) {
  RunResult result;
  const std::size_t complete = complete_samples(logs);
  first = std::min(first, complete);
  result.samples = complete - first;
  std::vector<SampleBlocks> blocks;
  std::size_t size = 1;  // the largest: the others' times a power of two
  double before = 0;
  for (const WorkerLog& log : logs) {
    blocks.push_back(log.blocks());
    size = std::max(size, log.blocks().size());
    before = std::max(before, log.end_before_first());
  }
  for (SampleBlocks& each : blocks) each.widen(size);

  std::vector<char> disturbed((complete - first) / size, 0);
  std::vector<double> values;
  std::vector<double> rejected;
  for (std::size_t number = 0; number < disturbed.size(); ++number) {
    double end = before;
    double lost = 0;
    for (const SampleBlocks& each : blocks) {
      end = std::max(end, each.block(number).end);
      lost = std::max(lost, each.block(number).lost);
    }
    disturbed[number] = lost > kDisturbed * (end - before) ? 1 : 0;
    (disturbed[number] != 0 ? rejected : values)
        .push_back((end - before) / static_cast<double>(size));
    before = end;
  }
  result.value = measured(std::move(values), rejected);

  const Remembered remembered = remembered_by_all(logs);
  const auto standing = [&](std::size_t sample) {
    if (sample < first || sample >= complete || !remembered.has(sample)) return Standing::outside;
    const std::size_t number = (sample - first) / size;
    return number < disturbed.size() && disturbed[number] ? Standing::disturbed : Standing::counts;
  };
  summarise_steps(problem, segments.size(), copies, logs, standing, result);

  const std::size_t shown = middle_stretch(remembered, first, complete);
  if (shown == complete) return result;
  double origin = std::numeric_limits<double>::infinity();
  for (const StepEvent& event : events_of(logs, shown, remembered.stretch(), 0)) {
    origin = std::min(origin, event.start);
  }
  result.events = events_of(logs, shown, remembered.stretch(), origin);
  return result;
}

}  // namespace placewright
