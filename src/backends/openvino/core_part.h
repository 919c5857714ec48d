// CompiledPart and Request on ov::CompiledModel and ov::InferRequest.
//
// All tensors are host tensors: a GPU that has memory of its own copies them inside its inference,
// so that the copies are part of the measured times of ops and cuts.

#pragma once

#include <memory>
#include <vector>

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

// An output of a request, which others read without copying.
class TensorBuffer final : public Buffer {
 public:
  explicit TensorBuffer(ov::Tensor tensor) : tensor_(std::move(tensor)) {}

  [[nodiscard]] const MemorySpace& space() const override { return host_; }
  [[nodiscard]] std::size_t size() const override { return tensor_.get_byte_size(); }
  [[nodiscard]] std::span<std::byte> bytes() const override {
    return {static_cast<std::byte*>(tensor_.data()), tensor_.get_byte_size()};
  }
  [[nodiscard]] const ov::Tensor& tensor() const { return tensor_; }

 private:
  mutable ov::Tensor tensor_;  // a buffer is a handle: what it holds may change
  MemorySpace host_;
};

class CoreRequest final : public Request {
 public:
  explicit CoreRequest(ov::InferRequest request);

  void bind_input(std::size_t input, Buffer& buffer) override;
  [[nodiscard]] Buffer& output(std::size_t output) override { return outputs_.at(output); }
  void run() override;
  void start() override { request_.start_async(); }
  void wait() override;
  void stop() override { request_.cancel(); }
  [[nodiscard]] std::vector<NodeTime> times() const override;

 private:
  ov::InferRequest request_;
  std::vector<TensorBuffer> outputs_;
};

class CorePart final : public CompiledPart {
 public:
  CorePart(ov::CompiledModel compiled, std::vector<TensorKey> inputs,
           std::vector<TensorKey> outputs)
      : compiled_(std::move(compiled)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  [[nodiscard]] const std::vector<TensorKey>& inputs() const override { return inputs_; }
  [[nodiscard]] const std::vector<TensorKey>& outputs() const override { return outputs_; }
  [[nodiscard]] Precision precision() const override;
  [[nodiscard]] std::size_t advised_requests() const override {
    return compiled_.get_property(ov::optimal_number_of_infer_requests);
  }
  [[nodiscard]] std::vector<ExecutedNode> executed() const override;
  [[nodiscard]] std::unique_ptr<Request> request() override;

 private:
  ov::CompiledModel compiled_;
  std::vector<TensorKey> inputs_;
  std::vector<TensorKey> outputs_;
};

}  // namespace placewright::openvino
