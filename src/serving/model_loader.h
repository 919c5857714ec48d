// Reads, measures and compiles the models that a server is to have.

#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "backends/model_files.h"
#include "machine/targets.h"
#include "serving/loaded_model.h"
#include "serving/model_folder.h"
#include "serving/server_settings.h"

namespace placewright {

class ModelLoader {
 public:
  explicit ModelLoader(const ServerSettings& settings);

  [[nodiscard]] const Target& target() const { return target_; }

  // `others`: the own times of the models that are served beside it, which say how it is cut.
  // Measurements are taken from the cache if they are there. Throws InputError and RuntimeError.
  [[nodiscard]] std::shared_ptr<LoadedModel> load(const std::string& path,
                                                  std::span<const double> others) const;
  // The same, but compiled only to measure it.
  [[nodiscard]] ModelCuts measure(const std::string& path, std::span<const double> others) const;
  // Of one inference, uncut.
  [[nodiscard]] double own_time(const std::string& path) const;

 private:
  struct Opened {
    const Runtime* runtime = nullptr;
    ModelFile file;
    std::shared_ptr<const NeuralModel> model;
    std::string key;  // of its measurements
  };
  [[nodiscard]] Opened open(const std::string& path) const;
  [[nodiscard]] ModelCuts whole_of(const Opened& opened) const;
  [[nodiscard]] ModelCuts cuts_of(const Opened& opened, std::span<const double> others) const;

  const ServerSettings& settings_;
  Target target_;
};

// Model files as the server would have them. They are measured, or were before.
std::vector<ServedModel> served_models(const ServerSettings& settings);

// "1.20 ms, 1 segments, 0.90 ms each in batches of 2".
std::string forms_text(const ModelCuts& cuts);

}  // namespace placewright
