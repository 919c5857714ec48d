#include "backends/openvino/helper_threads.h"

#include <mutex>
#include <thread>

#include <openvino/op/parameter.hpp>
#include <openvino/op/relu.hpp>
#include <openvino/op/result.hpp>
#include <sched.h>
#include <unistd.h>

namespace placewright::openvino {
namespace {

// Enough work for every thread to have a part of it.
std::shared_ptr<ov::Model> wide_model() {
  const auto input =
      std::make_shared<ov::op::v0::Parameter>(ov::element::f32, ov::Shape{1, 256, 64, 64});
  const auto relu = std::make_shared<ov::op::v0::Relu>(input);
  return std::make_shared<ov::Model>(ov::ResultVector{std::make_shared<ov::op::v0::Result>(relu)},
                                     ov::ParameterVector{input}, "helper threads");
}

void run_with_all_threads(ov::Core& core) {
  cpu_set_t cores;
  // The main thread is bound to no cores of ours.
  if (sched_getaffinity(getpid(), sizeof(cores), &cores) != 0) return;
  if (sched_setaffinity(0, sizeof(cores), &cores) != 0) return;
  auto compiled = core.compile_model(wide_model(), "CPU",
                                     {ov::hint::enable_cpu_pinning(false), ov::num_streams(1),
                                      ov::inference_num_threads(CPU_COUNT(&cores))});
  ov::InferRequest request = compiled.create_infer_request();
  constexpr int kRuns = 3;
  for (int i = 0; i < kRuns; ++i) request.infer();
}

}  // namespace

void make_helper_threads(ov::Core& core) {
  static std::once_flag made;
  std::call_once(made, [&] { std::thread(run_with_all_threads, std::ref(core)).join(); });
}

}  // namespace placewright::openvino
