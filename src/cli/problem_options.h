// Which problem: the file, and what the command line changes in it.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/device_options.h"
#include "cli/output_options.h"
#include "formats/problem_file.h"
#include "problem/problem.h"

namespace placewright::cli {

struct ProblemOptions {
  std::string path;               // "-": standard input
  std::vector<std::string> more;  // further files, joined with the first (problem/join.h)
  std::string format;
  std::vector<std::string>
      other_formats;  // that the verb reads itself; set before options are added
  std::string cluster;
  std::optional<Objective> objective;
  std::optional<Contiguity> contiguity;
  std::optional<TransferMode> transfers;
  std::optional<TrainingMode> training;
  std::optional<MemoryModel> memory;
  std::optional<PipelineSchedule> schedule;
  std::optional<int> micro_batches;
  std::optional<bool> congestion;
  std::optional<int> calls;
  std::optional<int> replicas;
  std::vector<std::string> pins;     // OP=DEVICE
  std::vector<std::string> forbids;  // OP=DEVICE
  ModelOptions models;               // shapes and precision
  DeviceOptions devices;             // to measure a model on
  MeasuringOptions measuring;

  // The file as the verb's argument.
  void add_argument_to(CLI::App& verb);
  // The file as `--problem`, for verbs whose argument is a plan.
  void add_option_to(CLI::App& verb);

  // Wrong flags are a UsageError and found before any file is opened. A model becomes a problem
  // (model_problem.h).
  [[nodiscard]] ProblemFile read(const OutputOptions& output) const;

  // Whether the files are models that a backend reads, not problems.
  [[nodiscard]] bool names_models() const;
  // The models with their shapes. Throws UsageError.
  [[nodiscard]] std::vector<ModelFile> model_files() const;

  // The steps of `read`, for verbs that come to the problem through a plan.
  void check() const;
  [[nodiscard]] ReadOptions read_options() const { return {format, objective, cluster}; }
  void apply_to(ProblemDraft& draft) const;

 private:
  void add_flags_to(CLI::App& verb);
  [[nodiscard]] ProblemFile read_models(bool quiet) const;
  [[nodiscard]] ProblemFile read_problems() const;
  void join_more(ProblemFile& file, const ReadOptions& options) const;
  void apply_rules_to(Rules& rules) const;
  void apply_pins_to(ProblemDraft& draft) const;
};

}  // namespace placewright::cli
