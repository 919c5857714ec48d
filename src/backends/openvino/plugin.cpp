// The plugin's one exported function; see src/backends/loader.cpp.

#include "backends/openvino/core_runtime.h"

extern "C" __attribute__((visibility("default"))) const placewright::Runtime*
placewright_openvino_runtime() {
  static const placewright::openvino::CoreRuntime runtime;
  return &runtime;
}
