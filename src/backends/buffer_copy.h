// A copy between the memories of two targets, as often as it is wanted.
//
// The backend that owns one of the two spaces makes it; where two backends meet, the bytes go
// through host memory.

#pragma once

#include <optional>

#include "backends/runtime.h"
#include "machine/targets.h"

namespace placewright {

class BufferCopy {
 public:
  // Each buffer is in the memory of its target; both must outlive the copy, and have one size.
  BufferCopy(const Target& from, const Buffer& source, const Target& to, Buffer& destination);

  // Returns when the bytes have arrived. Throws what the backends throw.
  void run();

 private:
  const Runtime* reads_;   // the source
  const Runtime* writes_;  // the destination
  const Buffer& source_;
  Buffer& destination_;
  std::optional<HostBuffer> between_;  // of two backends
};

}  // namespace placewright
