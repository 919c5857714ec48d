// Memory in one memory space.
//
// What a device with memory of its own holds cannot be read as bytes: only Runtime::copy reaches
// it. Header only, because plugins use it and are not linked with the library.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "machine/targets.h"

namespace placewright {

class Buffer {
 public:
  virtual ~Buffer() = default;

  [[nodiscard]] virtual const MemorySpace& space() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  // Host memory only; empty for any other space.
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
};

// Zeros on a page boundary, which backends take without copying.
class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t size) : size_(size) {
    constexpr std::size_t kPage = 4096;
    const std::size_t whole = (std::max<std::size_t>(size, 1) + kPage - 1) / kPage * kPage;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, whole)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, whole);
  }

  [[nodiscard]] const MemorySpace& space() const override {
    static const MemorySpace host;
    return host;
  }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const override { return {data_.get(), size_}; }
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

}  // namespace placewright
