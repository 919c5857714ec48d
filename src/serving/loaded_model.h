// A served model, compiled in every form in which the scheduler runs it: whole, in segments, for
// batches, and on each half of the cores.
//
// What a client sends is bound as it is, without a copy; only a batch is copied together. Of each
// form one thread at a time runs a step.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "serving/measured_models.h"
#include "serving/scheduler.h"

namespace placewright {

using Bytes = std::span<const std::byte>;
// Of one request, by input of the model.
using RequestInputs = std::vector<Bytes>;

class LoadedModel {
 public:
  // `batched`: the model for each batch size of `cuts`. Throws RuntimeError.
  LoadedModel(std::shared_ptr<const NeuralModel> model, const Target& target, ModelCuts cuts,
              const BatchedModels& batched = {});
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  [[nodiscard]] const ModelGraph& graph() const { return model_->graph(); }
  [[nodiscard]] const ModelCuts& cuts() const { return cuts_; }

  // `inputs`: of each request of the step where it is their first one, of the right sizes; they
  // must stay until the requests have ended. Else empty.
  void run(const Step& step, const std::vector<const RequestInputs*>& inputs);
  // Of one request of a step, by its place there; by output of the model, until the next run of
  // this form.
  [[nodiscard]] std::vector<Bytes> outputs(const Step& step, std::size_t place) const;

 private:
  class Form;
  [[nodiscard]] Form& form_of(const Step& step) const;

  std::shared_ptr<const NeuralModel> model_;
  ModelCuts cuts_;
  std::unique_ptr<Form> whole_;
  std::unique_ptr<Form> cut_;
  std::vector<std::unique_ptr<Form>> halves_;
  std::map<std::size_t, std::unique_ptr<Form>> batches_;
};

}  // namespace placewright
