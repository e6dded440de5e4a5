/// \file
/// Makes memory reachable that the program has already.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <rondo/export.hpp>

namespace rondo {

namespace detail {
class Adoption;
}

/// Owns the adoption of some memory, not the memory: it can be moved, and must be destroyed before
/// the program frees or reallocates the memory (a container does both when it grows), on any
/// thread, but not while a call uses it.
class RONDO_API AdoptedMemory {
 public:
  AdoptedMemory() noexcept;
  AdoptedMemory(AdoptedMemory&& other) noexcept;
  AdoptedMemory& operator=(AdoptedMemory&& other) noexcept;
  AdoptedMemory(const AdoptedMemory&) = delete;
  AdoptedMemory& operator=(const AdoptedMemory&) = delete;
  /// Moves the pages back into ordinary memory, with their contents, at the same addresses. If
  /// there is too little memory for that, or other memory has taken their place since, a warning in
  /// the log says so, and they stay allocated until the process ends.
  ~AdoptedMemory();

 private:
  friend RONDO_API AdoptedMemory adopt(void* memory, std::size_t bytes);
  std::unique_ptr<detail::Adoption> adoption_;
};

/// Makes memory reachable (rondo/reachable_memory.hpp) whose allocator the program cannot change:
/// the pages that hold these bytes move into the arena of this process, with their contents, and
/// stay at the same addresses. Not collective; communicators that exist or come later find them.
///
///     std::vector<float> gradients = model.gradients();
///     const rondo::AdoptedMemory adopted = rondo::adopt(std::span(gradients));
///     comm.all_reduce(gradients);
///
/// While the pages move, here and when the owner is destroyed, no other thread may write to them,
/// nor to other objects on the first and the last page: such a write would be lost. Where memory
/// comes from malloc, its own records may lie on these pages. So no other thread may allocate or
/// free memory then, and no call of Rondo may be in progress, since its threads do both. That holds
/// unless the memory begins and ends with a page.
///
/// As long as the owner lives, the memory must be neither freed nor reallocated, nor be what a GPU
/// or a network card has been told to use (cudaHostRegister, ibv_reg_mr). What the program said of
/// its pages before (mlock, mbind, madvise) does not hold for the new ones.
///
/// A child that the program forks has its own copy of the first and the last page, and reads in the
/// others what its parent and the other ranks write there, until it writes there itself; after its
/// parent has destroyed the owner, it finds anything there. Meanwhile no other thread of the parent
/// may allocate or free memory, as above.
///
/// Takes the time of copying the pages once, and twice their memory for that time. If this process
/// has no arena, nothing happens. Throws UsageError, and has changed nothing, if some page is not
/// ordinary memory of this process that can be written and not executed (a file, the stack of this
/// thread, memory that is shared already), or belongs to memory that is adopted already;
/// TransportError if there is too little memory. Stacks of other threads are not recognised.
RONDO_API AdoptedMemory adopt(void* memory, std::size_t bytes);

template <class T>
[[nodiscard]] AdoptedMemory adopt(std::span<T> memory) {
  return adopt(memory.data(), memory.size_bytes());
}

}  // namespace rondo
