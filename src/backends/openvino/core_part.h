// CompiledPart and Request on ov::CompiledModel and ov::InferRequest.

#pragma once

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

class CoreRequest final : public Request {
 public:
  explicit CoreRequest(ov::InferRequest request) : request_(std::move(request)) {}

  void bind_input(std::size_t input, std::byte* data) override;
  void bind_input(std::size_t input, Request& producer, std::size_t output) override;
  [[nodiscard]] std::span<const std::byte> output(std::size_t output) override;
  void run() override { request_.infer(); }
  void start() override { request_.start_async(); }
  void wait() override { request_.wait(); }
  [[nodiscard]] std::vector<NodeTime> times() const override;

 private:
  ov::InferRequest request_;
};

class CorePart final : public CompiledPart {
 public:
  CorePart(ov::CompiledModel compiled, std::vector<TensorKey> inputs,
           std::vector<TensorKey> outputs)
      : compiled_(std::move(compiled)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  [[nodiscard]] const std::vector<TensorKey>& inputs() const override { return inputs_; }
  [[nodiscard]] const std::vector<TensorKey>& outputs() const override { return outputs_; }
  [[nodiscard]] std::vector<ExecutedNode> executed() const override;
  [[nodiscard]] std::unique_ptr<Request> request() override;

 private:
  ov::CompiledModel compiled_;
  std::vector<TensorKey> inputs_;
  std::vector<TensorKey> outputs_;
};

}  // namespace placewright::openvino
