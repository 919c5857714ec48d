// What workers write down while a plan runs, in memory that does not grow with the run, and what
// follows from it.
//
// At first every sample is remembered. When they become too many, only those stretches of samples
// stay whose number times the golden ratio has a fractional part below 1/2, then 1/4, and so on: a
// subset that is spread evenly over the run and over whatever repeats in it (slots, replicas), and
// that all workers find without asking each other. A stretch is one sample of a schedule; of a
// pipeline it is long enough to show how samples follow each other.
//
// How fast a pipeline is shows in how far apart its samples end, so nothing of it may be forgotten:
// equal blocks of samples, each with the end of the sample that ends last and the time lost in it,
// are joined two and two whenever they become more than kMostBlocks. Replicas do not wait for each
// other, so that a later sample may end first: a block holds whole rounds, in which each replica
// has its turn.

#pragma once

#include <cstddef>
#include <vector>

#include "running/execution.h"

namespace placewright {

inline constexpr std::size_t kMostBlocks = 64;
inline constexpr std::size_t kMostEvents = std::size_t{1} << 16U;  // by worker

// The stretches of samples that are remembered; see above.
class Remembered {
 public:
  explicit Remembered(std::size_t stretch = 1) : stretch_(stretch) {}

  [[nodiscard]] bool has(std::size_t sample) const;
  [[nodiscard]] std::size_t stretch() const { return stretch_; }
  void halve() { ++halvings_; }
  // The smaller of the two.
  [[nodiscard]] Remembered joined(const Remembered& other) const;

 private:
  std::size_t stretch_;
  unsigned halvings_ = 0;
};

// Equal blocks of samples, each a number of rounds that is a power of two.
class SampleBlocks {
 public:
  struct Block {
    double end = 0;   // of all of its samples; 0: this worker had nothing to do with it
    double lost = 0;  // milliseconds, over all of its samples
  };

  explicit SampleBlocks(std::size_t round) : size_(round) {}

  // Samples are counted from the first that counts.
  void add(std::size_t sample, double end, double lost);
  // Blocks of that size, the size now times a power of two.
  void widen(std::size_t size);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Block block(std::size_t number) const {
    return number < blocks_.size() ? blocks_[number] : Block{};
  }

 private:
  std::size_t size_;
  std::vector<Block> blocks_;
};

// Of one worker. Times in milliseconds since the start of the run.
class WorkerLog {
 public:
  struct Sample {
    std::size_t number = 0;
    double begin = 0;  // when the worker set out
    double lost = 0;   // to others
  };

  // Samples before `first` do not count. After `round` samples every replica had its turn.
  WorkerLog(std::size_t first, std::size_t stretch, std::size_t round)
      : first_(first), remembered_(stretch), blocks_(round) {}

  void add(const StepEvent& event);
  void end_sample(const Sample& sample);                         // of a schedule
  void end_step(std::size_t sample, double end, double lost);    // of a pipeline
  void completed(std::size_t samples) { completed_ = samples; }  // all steps of the worker ran

  [[nodiscard]] const std::vector<StepEvent>& events() const { return events_; }
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }
  [[nodiscard]] const SampleBlocks& blocks() const { return blocks_; }
  [[nodiscard]] double end_before_first() const { return end_before_first_; }
  [[nodiscard]] const Remembered& remembered() const { return remembered_; }
  [[nodiscard]] std::size_t completed() const { return completed_; }

 private:
  void forget();

  std::size_t first_;
  Remembered remembered_;
  std::vector<StepEvent> events_;
  std::vector<Sample> samples_;
  SampleBlocks blocks_;
  double end_before_first_ = 0;  // of the samples that do not count
  std::size_t completed_ = 0;
};

// The number of samples, from the first on, of which every step has run.
std::size_t complete_samples(const std::vector<WorkerLog>& logs);

// The value of a schedule whose models end at these milliseconds after its begin.
double value_of_ends(const Problem& problem, const std::vector<double>& ends);

// Logs are by worker, steps are the segments and `copies` copies behind them. Samples before
// `first` do not count. The results have no segments, copies and outputs yet.
RunResult summarise_schedule(const Problem& problem, const std::vector<Segment>& segments,
                             std::size_t copies, const std::vector<WorkerLog>& logs,
                             std::size_t first);
RunResult summarise_pipeline(const Problem& problem, const std::vector<Segment>& segments,
                             std::size_t copies, const std::vector<WorkerLog>& logs,
                             std::size_t first);

}  // namespace placewright
