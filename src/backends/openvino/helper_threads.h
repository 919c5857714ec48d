// The threads that help OpenVINO with inferences of several threads.
//
// TBB makes them when they are first needed; each inherits the cores of the thread that needs it,
// and then helps with every model. Made by a thread that is bound to the cores 0 to 3 it would stay
// there while it helps a model on the cores 4 to 7: both sets would be several times slower, and
// four cores idle. So all of them are made beforehand by a thread that may use every core of the
// process, and the operating system finds them the cores that are free.

#pragma once

#include <openvino/openvino.hpp>

namespace placewright::openvino {

// Before the first inference with several threads; later calls do nothing.
void make_helper_threads(ov::Core& core);

}  // namespace placewright::openvino
