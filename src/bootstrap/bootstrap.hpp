// Exchanges small blobs between processes while links are made; not used after that.
#pragma once

#include <algorithm>
#include <chrono>
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

  // Sets how long other steps of joining may wait for a rank: a minute, or `timeout` if that is
  // shorter.
  void set_patience(std::chrono::milliseconds timeout) { patience_ = std::min(patience_, timeout); }
  [[nodiscard]] std::chrono::milliseconds patience() const { return patience_; }

  template <class T>
  std::vector<T> exchange(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather(&mine, all.data(), sizeof(T));
    return all;
  }

  // Each rank brings a row, of the same length on all ranks. Returns the rows of all ranks.
  template <class T>
  std::vector<std::vector<T>> exchange_rows(const std::vector<T>& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> flat(static_cast<std::size_t>(size()) * mine.size());
    all_gather(mine.data(), flat.data(), mine.size() * sizeof(T));
    const auto length = static_cast<std::ptrdiff_t>(mine.size());
    std::vector<std::vector<T>> rows;
    for (auto row = flat.begin(); row != flat.end(); row += length) {
      rows.emplace_back(row, row + length);
    }
    return rows;
  }

 private:
  std::chrono::milliseconds patience_ = std::chrono::minutes(1);
};

}  // namespace rondo::detail
