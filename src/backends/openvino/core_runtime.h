// Runtime on an ov::Core.

#pragma once

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

class CoreRuntime final : public Runtime {
 public:
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] std::vector<RuntimeDevice> devices() const override;
  [[nodiscard]] ModelSignature signature(const std::string& path,
                                         const Shapes& shapes) const override;
  [[nodiscard]] std::unique_ptr<NeuralModel> read(const std::string& path, const Shapes& shapes,
                                                  Precision precision) const override;
  [[nodiscard]] std::unique_ptr<Buffer> allocate(const std::string& device,
                                                 std::size_t size) const override;
  void copy(const Buffer& from, Buffer& to) const override;
  // OpenVINO says nothing about who else uses a device.
  [[nodiscard]] std::unique_ptr<DisturbanceProbe> probe(const std::string&) const override {
    return nullptr;
  }

 private:
  mutable ov::Core core_;
};

}  // namespace placewright::openvino
