// A real model with something changed, for tests of what runs it.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/runtime.h"

namespace placewright::testing {

// For those that change how it is compiled.
class WrappedModel : public NeuralModel {
 public:
  explicit WrappedModel(std::unique_ptr<NeuralModel> model) : model_(std::move(model)) {}

  [[nodiscard]] const ModelGraph& graph() const override { return model_->graph(); }
  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    return model_->compile(ops, options);
  }
  [[nodiscard]] std::vector<std::size_t> unsupported(const std::string& device) const override {
    return model_->unsupported(device);
  }
  [[nodiscard]] SerialisedModel serialised() const override { return model_->serialised(); }
  [[nodiscard]] SerialisedPart serialised_part(std::span<const std::size_t> ops) const override {
    return model_->serialised_part(ops);
  }

 private:
  std::unique_ptr<NeuralModel> model_;
};

// For those that change how it runs.
class WrappedRequest : public Request {
 public:
  explicit WrappedRequest(std::unique_ptr<Request> request) : request_(std::move(request)) {}

  void bind_input(std::size_t input, Buffer& buffer) override {
    request_->bind_input(input, buffer);
  }
  [[nodiscard]] Buffer& output(std::size_t output) override { return request_->output(output); }
  void run() override { request_->run(); }
  void start() override { request_->start(); }
  void wait() override { request_->wait(); }
  void stop() override { request_->stop(); }
  [[nodiscard]] std::vector<NodeTime> times() const override { return request_->times(); }

 private:
  std::unique_ptr<Request> request_;
};

// A part whose requests are wrapped so.
template <class RequestType>
class WrappedPart final : public CompiledPart {
 public:
  explicit WrappedPart(std::unique_ptr<CompiledPart> part) : part_(std::move(part)) {}

  [[nodiscard]] const std::vector<TensorKey>& inputs() const override { return part_->inputs(); }
  [[nodiscard]] const std::vector<TensorKey>& outputs() const override { return part_->outputs(); }
  [[nodiscard]] Precision precision() const override { return part_->precision(); }
  [[nodiscard]] std::vector<ExecutedNode> executed() const override { return part_->executed(); }
  [[nodiscard]] std::unique_ptr<Request> request() override {
    return std::make_unique<RequestType>(part_->request());
  }

 private:
  std::unique_ptr<CompiledPart> part_;
};

}  // namespace placewright::testing
