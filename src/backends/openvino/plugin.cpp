// What the plugin exports; see backends/registry.h.

#include "backends/openvino/core_runtime.h"

extern "C" __attribute__((visibility("default"))) int placewright_backend_interface() {
  return placewright::kBackendInterface;
}

extern "C" __attribute__((visibility("default"))) const placewright::Runtime*
placewright_backend() {
  static const placewright::openvino::CoreRuntime runtime;
  return &runtime;
}
