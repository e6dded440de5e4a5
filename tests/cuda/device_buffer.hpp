// Device memory of one element type, a stream, and the devices of a group, for tests; through the
// thin layer, so that they run on a GPU and on the stand-in alike.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rondo/cuda.hpp>

#include "cuda/api/api.hpp"
#include "cuda/api/handles.hpp"

namespace rondo::test {

// Eight ranks of this process share a device. Set before CUDA reads it.
[[maybe_unused]] inline const int kConnections = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);

inline std::vector<int> on_one_device(int ranks) {
  return std::vector<int>(static_cast<std::size_t>(ranks), 0);
}

// Deals the devices out to the ranks in turn.
inline std::vector<int> spread(int ranks) {
  std::vector<int> devices;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(rank % cuda::device_count());
  return devices;
}

template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer(int device, const std::vector<T>& values)
      : device_(device),
        count_(values.size()),
        memory_(std::make_unique<detail::gpu::DeviceMemory>(device, values.size() * sizeof(T) + 1)),
        data_(reinterpret_cast<T*>(memory_->data())) {
    write(values);
  }
  // In memory that all ranks reach. Collective.
  DeviceBuffer(cuda::Communicator& comm, const std::vector<T>& values)
      : device_(comm.device()),
        count_(values.size()),
        registered_(comm.allocate<T>(values.size())),
        data_(registered_->data()) {
    write(values);
  }
  DeviceBuffer(int device, std::size_t count, T value)
      : DeviceBuffer(device, std::vector<T>(count, value)) {}

  void write(const std::vector<T>& values) {
    const detail::gpu::DeviceScope scope(device_);
    if (!values.empty()) detail::gpu::api::copy(data_, values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] std::vector<T> read() const {
    const detail::gpu::DeviceScope scope(device_);
    std::vector<T> values(count_);
    if (count_ > 0) detail::gpu::api::copy(values.data(), data_, count_ * sizeof(T));
    return values;
  }
  [[nodiscard]] std::span<T> span() const { return {data_, count_}; }

 private:
  int device_;
  std::size_t count_;
  std::unique_ptr<detail::gpu::DeviceMemory> memory_;
  std::optional<cuda::RegisteredMemory<T>> registered_;
  T* data_;
};

class DeviceStream {
 public:
  explicit DeviceStream(int device) : device_(device) {
    const detail::gpu::DeviceScope scope(device);
    stream_ = detail::gpu::api::make_stream(false);
  }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() {
    const detail::gpu::DeviceScope scope(device_);
    detail::gpu::api::destroy(stream_);
  }
  [[nodiscard]] detail::gpu::api::Stream get() const { return stream_; }

 private:
  int device_;
  detail::gpu::api::Stream stream_ = nullptr;
};

}  // namespace rondo::test
