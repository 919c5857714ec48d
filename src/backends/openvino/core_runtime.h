// Runtime on an ov::Core.

#pragma once

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

class CoreRuntime final : public Runtime {
 public:
  [[nodiscard]] std::string version() const override;
  [[nodiscard]] std::vector<RuntimeDevice> devices() const override;
  [[nodiscard]] std::unique_ptr<NeuralModel> read(const std::string& path,
                                                  const Shapes& shapes) const override;

 private:
  mutable ov::Core core_;
};

}  // namespace placewright::openvino
