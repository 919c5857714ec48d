#include "backends/buffer_copy.h"

#include "backends/registry.h"

namespace placewright {

BufferCopy::BufferCopy(const Target& from, const Buffer& source, const Target& to,
                       Buffer& destination)
    : reads_(&runtime_named(source.space().is_host() ? to.backend : from.backend)),
      writes_(&runtime_named(destination.space().is_host() ? from.backend : to.backend)),
      source_(source),
      destination_(destination) {
  if (!source.space().is_host() && !destination.space().is_host() && reads_ != writes_) {
    between_.emplace(source.size());
  }
}

void BufferCopy::run() {
  if (!between_) {
    reads_->copy(source_, destination_);
    return;
  }
  reads_->copy(source_, *between_);
  writes_->copy(*between_, destination_);
}

}  // namespace placewright
