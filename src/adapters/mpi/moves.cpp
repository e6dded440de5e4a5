// The collectives of MPI that move elements without reducing them. What travels are the bytes of
// the elements without gaps, whose number is the same on all ranks, whatever datatypes they pass.
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rondo/errors.hpp>

#include "adapters/mpi/calls.hpp"
#include "adapters/mpi/functions.hpp"

namespace rondo::mpi_programs {
namespace {

// Nothing for arguments that MPI is to complain about.
std::optional<Elements> elements_of(const void* data, MPI_Count count, MPI_Datatype type) {
  const auto layout = layout_of(type);
  if (!layout || count < 0) return std::nullopt;
  return Elements{data, static_cast<std::size_t>(count), type, *layout};
}

Call call_of(Collective collective, std::size_t bytes, const std::byte* in, std::byte* out,
             int root = 0) {
  Call call;
  call.collective = collective;
  call.type = DataType::u8;
  call.count = bytes;
  call.in = in;
  call.out = out;
  call.root = root;
  return call;
}

std::span<const std::uint8_t> bytes_at(const std::byte* data, std::size_t bytes) {
  return {reinterpret_cast<const std::uint8_t*>(data), bytes};
}
std::span<std::uint8_t> bytes_at(std::byte* data, std::size_t bytes) {
  return {reinterpret_cast<std::uint8_t*>(data), bytes};
}

bool all_counts_are_valid(Counts counts, Counts places, int ranks) {
  if (!counts.given() || !places.given()) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    if (counts[rank] < 0) return false;
  }
  return true;
}

// The root's own part, of which the root says twice how large it is.
void copy_own(std::byte* to, std::size_t room, const std::byte* from, std::size_t bytes) {
  if (room != bytes) {
    throw UsageError("the root sends " + std::to_string(bytes) + " bytes to itself, and receives " +
                     std::to_string(room));
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::size_t times(const Group& group) { return static_cast<std::size_t>(group.size()); }

// A copy of what an all_to_all in place sends, which has to be elsewhere than what it receives.
std::vector<std::byte> copy_of(const std::byte* data, std::size_t bytes) {
  return {data, data + bytes};
}

}  // namespace

int barrier(MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr) return hand_on();
    return make(Function::barrier, comm, *group, 0, hand_on,
                [](Communicator& to) { to.barrier(); });
  });
}

int broadcast(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
              HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    const auto elements = elements_of(data, count, type);
    if (group == nullptr || !elements || !group->has(root)) return hand_on();
    return make(
        Function::broadcast, comm, *group, elements->bytes(), hand_on, [&](Communicator& to) {
          Output out(*elements);
          const bool is_root = to.rank() == root;
          if (is_root && !elements->layout.contiguous) pack(*elements, out.data());
          to.run(call_of(Collective::broadcast, elements->bytes(), out.data(), out.data(), root));
          if (!is_root) out.unpack();
        });
  });
}

int all_gather(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
               MPI_Count out_count, MPI_Datatype out_type, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    const auto one = elements_of(out, out_count, out_type);
    if (group == nullptr || !one) return hand_on();
    const auto own =
        in == MPI_IN_PLACE
            ? one->part(group->rank() * static_cast<std::ptrdiff_t>(out_count), one->count)
            : elements_of(in, in_count, in_type);
    if (!own || own->bytes() != one->bytes()) return hand_on();
    return make(Function::all_gather, comm, *group, one->bytes(), hand_on, [&](Communicator& to) {
      const Elements whole = one->part(0, one->count * times(*group));
      const Input input(*own);
      Output output(whole);
      to.run(call_of(Collective::all_gather, whole.bytes(), input.data(), output.data()));
      output.unpack();
    });
  });
}

int all_gather_v(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                 Counts out_counts, Counts places, MPI_Datatype out_type, MPI_Comm comm,
                 HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    const auto buffer = elements_of(out, 0, out_type);
    if (group == nullptr || !buffer) return hand_on();
    if (!all_counts_are_valid(out_counts, places, group->size())) return hand_on();
    const Parts parts(*buffer, out_counts, places, group->size());
    const auto own =
        in == MPI_IN_PLACE ? parts.of(group->rank()) : elements_of(in, in_count, in_type);
    if (!own || own->bytes() != parts.of(group->rank()).bytes()) return hand_on();
    return make(Function::all_gather_v, comm, *group, parts.all_bytes() / times(*group), hand_on,
                [&](Communicator& to) {
                  const Input input(*own);
                  PartsOutput output(parts);
                  Call call = call_of(Collective::all_gather, parts.all_bytes(), input.data(),
                                      output.data());
                  call.counts = parts.bytes().data();
                  to.run(call);
                  output.unpack();
                });
  });
}

int gather(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out, MPI_Count out_count,
           MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || !group->has(root)) return hand_on();
    const bool is_root = group->rank() == root;
    const auto one = is_root ? elements_of(out, out_count, out_type) : Elements{};
    const auto own = is_root && in == MPI_IN_PLACE && one
                         ? one->part(root * static_cast<std::ptrdiff_t>(out_count), one->count)
                         : elements_of(in, in_count, in_type);
    if (!one || !own || (is_root && own->bytes() != one->bytes())) return hand_on();
    return make(Function::gather, comm, *group, own->bytes(), hand_on, [&](Communicator& to) {
      const Input input(*own);
      Output output(is_root ? one->part(0, one->count * times(*group)) : Elements{});
      to.run(call_of(Collective::gather, own->bytes() * times(*group), input.data(),
                     is_root ? output.data() : nullptr, root));
      if (is_root) output.unpack();
    });
  });
}

// The root alone knows how many elements each rank has, so these go as messages.
int gather_v(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out, Counts out_counts,
             Counts places, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || !group->has(root)) return hand_on();
    const bool is_root = group->rank() == root;
    const auto buffer = is_root ? elements_of(out, 0, out_type) : Elements{};
    if (!buffer) return hand_on();
    if (is_root && !all_counts_are_valid(out_counts, places, group->size())) return hand_on();
    const auto own =
        is_root && in == MPI_IN_PLACE ? Elements{} : elements_of(in, in_count, in_type);
    if (!own) return hand_on();
    return make(Function::gather_v, comm, *group, 0, hand_on, [&](Communicator& to) {
      if (!is_root) {
        const Input input(*own);
        if (own->bytes() > 0) to.send(bytes_at(input.data(), own->bytes()), root);
        return;
      }
      const Parts parts(*buffer, out_counts, places, group->size());
      for (int rank = 0; rank < group->size(); ++rank) {
        const Elements& theirs = parts.of(rank);
        if (rank == root && in == MPI_IN_PLACE) continue;
        Output output(theirs);
        if (rank == root) {
          const Input input(*own);
          copy_own(output.data(), theirs.bytes(), input.data(), own->bytes());
        } else if (theirs.bytes() > 0) {
          to.recv(bytes_at(output.data(), theirs.bytes()), rank);
        }
        output.unpack();
      }
    });
  });
}

int scatter(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
            MPI_Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || !group->has(root)) return hand_on();
    const bool is_root = group->rank() == root;
    const auto one = is_root ? elements_of(in, in_count, in_type) : Elements{};
    const auto own = is_root && out == MPI_IN_PLACE && one
                         ? one->part(root * static_cast<std::ptrdiff_t>(in_count), one->count)
                         : elements_of(out, out_count, out_type);
    if (!one || !own || (is_root && own->bytes() != one->bytes())) return hand_on();
    return make(Function::scatter, comm, *group, own->bytes(), hand_on, [&](Communicator& to) {
      const Input input(is_root ? one->part(0, one->count * times(*group)) : Elements{});
      if (is_root && out == MPI_IN_PLACE) {  // its own part stays where it is
        std::vector<std::byte> unused(own->bytes());
        to.run(call_of(Collective::scatter, own->bytes() * times(*group), input.data(),
                       unused.data(), root));
        return;
      }
      Output output(*own);
      to.run(call_of(Collective::scatter, own->bytes() * times(*group),
                     is_root ? input.data() : nullptr, output.data(), root));
      output.unpack();
    });
  });
}

int scatter_v(const void* in, Counts in_counts, Counts places, MPI_Datatype in_type, void* out,
              MPI_Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || !group->has(root)) return hand_on();
    const bool is_root = group->rank() == root;
    const auto buffer = is_root ? elements_of(in, 0, in_type) : Elements{};
    if (!buffer) return hand_on();
    if (is_root && !all_counts_are_valid(in_counts, places, group->size())) return hand_on();
    const auto own =
        is_root && out == MPI_IN_PLACE ? Elements{} : elements_of(out, out_count, out_type);
    if (!own) return hand_on();
    return make(Function::scatter_v, comm, *group, 0, hand_on, [&](Communicator& to) {
      if (!is_root) {
        Output output(*own);
        if (own->bytes() > 0) to.recv(bytes_at(output.data(), own->bytes()), root);
        output.unpack();
        return;
      }
      const Parts parts(*buffer, in_counts, places, group->size());
      for (int rank = 0; rank < group->size(); ++rank) {
        const Elements& theirs = parts.of(rank);
        if (rank == root && out == MPI_IN_PLACE) continue;
        const Input input(theirs);
        if (rank == root) {
          Output output(*own);
          copy_own(output.data(), own->bytes(), input.data(), theirs.bytes());
          output.unpack();
        } else if (theirs.bytes() > 0) {
          to.send(bytes_at(input.data(), theirs.bytes()), rank);
        }
      }
    });
  });
}

int all_to_all(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
               MPI_Count out_count, MPI_Datatype out_type, MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    const auto one = elements_of(out, out_count, out_type);
    if (group == nullptr || !one) return hand_on();
    const auto sent = in == MPI_IN_PLACE ? one : elements_of(in, in_count, in_type);
    if (!sent || sent->bytes() != one->bytes()) return hand_on();
    return make(Function::all_to_all, comm, *group, one->bytes(), hand_on, [&](Communicator& to) {
      const Input input(sent->part(0, sent->count * times(*group)));
      const Elements whole = one->part(0, one->count * times(*group));
      Output output(whole);
      const auto copy = input.data() == output.data() ? copy_of(input.data(), whole.bytes())
                                                      : std::vector<std::byte>();
      to.run(call_of(Collective::all_to_all, whole.bytes(),
                     copy.empty() ? input.data() : copy.data(), output.data()));
      output.unpack();
    });
  });
}

int all_to_all_v(const void* in, Counts in_counts, Counts in_places, MPI_Datatype in_type,
                 void* out, Counts out_counts, Counts out_places, MPI_Datatype out_type,
                 MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    const auto to_buffer = elements_of(out, 0, out_type);
    const bool in_place = in == MPI_IN_PLACE;
    const auto from_buffer = in_place ? to_buffer : elements_of(in, 0, in_type);
    if (group == nullptr || !to_buffer || !from_buffer) return hand_on();
    if (in_place) {
      in_counts = out_counts;
      in_places = out_places;
    }
    if (!all_counts_are_valid(in_counts, in_places, group->size())) return hand_on();
    if (!all_counts_are_valid(out_counts, out_places, group->size())) return hand_on();
    return make(Function::all_to_all_v, comm, *group, 0, hand_on, [&](Communicator& to) {
      const Parts sent(*from_buffer, in_counts, in_places, group->size());
      const Parts received(*to_buffer, out_counts, out_places, group->size());
      const PartsInput input(sent);
      PartsOutput output(received);
      const auto copy = input.data() == output.data() ? copy_of(input.data(), sent.all_bytes())
                                                      : std::vector<std::byte>();
      Call call = call_of(Collective::all_to_all, sent.all_bytes(),
                          copy.empty() ? input.data() : copy.data(), output.data());
      call.counts = sent.bytes().data();
      call.received = received.all_bytes();
      call.received_counts = received.bytes().data();
      to.run(call);
      output.unpack();
    });
  });
}

}  // namespace rondo::mpi_programs
