// Exchanges small blobs between processes while links are made; not used after that.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace rondo::detail {

class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  // Collective: `all` gets every rank's `bytes` bytes, by rank. Throws TransportError.
  virtual void all_gather(const void* mine, void* all, std::size_t bytes) = 0;

  template <class T>
  std::vector<T> exchange(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather(&mine, all.data(), sizeof(T));
    return all;
  }
};

}  // namespace rondo::detail
