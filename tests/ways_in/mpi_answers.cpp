// An MPI program that knows nothing of Rondo: makes each collective twice, as MPI_... and as
// PMPI_..., and compares what it gets, bit for bit. Where librondo_mpi.so is preloaded, the first
// goes by Rondo, and the second by MPI itself. Ends with exit code 1 if any answers differ.
#include <mpi.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

int failures = 0;
long compared = 0;

using Bytes = std::vector<unsigned char>;

std::uint64_t mix(std::uint64_t value) {  // the finaliser of splitmix64
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  int rank = 0;
  int size = 0;
};

// `ours` and `theirs` get the same buffer, each its own copy, in which they leave their answers.
void compare(const Group& group, const std::string& what, const Bytes& before,
             const std::function<int(unsigned char*)>& ours,
             const std::function<int(unsigned char*)>& theirs) {
  // As in programs: aligned, and one buffer after the other.
  Bytes by_rondo = before;
  Bytes by_mpi = before;
  const int our_code = ours(by_rondo.data());
  const int their_code = theirs(by_mpi.data());
  ++compared;
  if (our_code == their_code && by_rondo == by_mpi) return;
  ++failures;
  std::size_t at = 0;
  while (at < before.size() && by_rondo[at] == by_mpi[at]) ++at;
  std::fprintf(stderr, "rank %d of %s: %s: codes %d and %d, first other byte %zu of %zu\n",
               group.rank, group.name.c_str(), what.c_str(), our_code, their_code, at,
               before.size());
}

// Element `i` of rank `rank`: small integers, so that sums and products of them are exact.
template <class T>
T value(int rank, std::size_t i, bool of_product) {
  const std::uint64_t bits = mix(i * 64 + static_cast<std::uint64_t>(rank));
  if constexpr (std::is_same_v<T, bool>) {
    return bits % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits >> 8U);
  } else {
    const auto small = static_cast<float>(of_product ? 1 + bits % 2 : bits % 1000);
    return static_cast<T>(small);
  }
}

template <class T>
Bytes values(int rank, std::size_t count, bool of_product = false) {
  Bytes bytes(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    const T one = value<T>(rank, i, of_product);
    std::memcpy(bytes.data() + i * sizeof(T), &one, sizeof(T));
  }
  return bytes;
}

Bytes joined(const Bytes& first, const Bytes& second) {
  Bytes both = first;
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

std::string text(const char* function, const std::string& of, std::size_t count, bool in_place) {
  return std::string(function) + " of " + std::to_string(count) + " " + of +
         (in_place ? " in place" : "");
}

// MPI's functions by one kind of counts, each as MPI_... and as PMPI_...
#define RONDO_TEST_FUNCTIONS(suffix)                                                \
  static constexpr auto allreduce = MPI_Allreduce##suffix;                          \
  static constexpr auto p_allreduce = PMPI_Allreduce##suffix;                       \
  static constexpr auto iallreduce = MPI_Iallreduce##suffix;                        \
  static constexpr auto p_iallreduce = PMPI_Iallreduce##suffix;                     \
  static constexpr auto reduce = MPI_Reduce##suffix;                                \
  static constexpr auto p_reduce = PMPI_Reduce##suffix;                             \
  static constexpr auto reduce_scatter = MPI_Reduce_scatter##suffix;                \
  static constexpr auto p_reduce_scatter = PMPI_Reduce_scatter##suffix;             \
  static constexpr auto reduce_scatter_block = MPI_Reduce_scatter_block##suffix;    \
  static constexpr auto p_reduce_scatter_block = PMPI_Reduce_scatter_block##suffix; \
  static constexpr auto bcast = MPI_Bcast##suffix;                                  \
  static constexpr auto p_bcast = PMPI_Bcast##suffix;                               \
  static constexpr auto allgather = MPI_Allgather##suffix;                          \
  static constexpr auto p_allgather = PMPI_Allgather##suffix;                       \
  static constexpr auto allgatherv = MPI_Allgatherv##suffix;                        \
  static constexpr auto p_allgatherv = PMPI_Allgatherv##suffix;                     \
  static constexpr auto gather = MPI_Gather##suffix;                                \
  static constexpr auto p_gather = PMPI_Gather##suffix;                             \
  static constexpr auto gatherv = MPI_Gatherv##suffix;                              \
  static constexpr auto p_gatherv = PMPI_Gatherv##suffix;                           \
  static constexpr auto scatter = MPI_Scatter##suffix;                              \
  static constexpr auto p_scatter = PMPI_Scatter##suffix;                           \
  static constexpr auto scatterv = MPI_Scatterv##suffix;                            \
  static constexpr auto p_scatterv = PMPI_Scatterv##suffix;                         \
  static constexpr auto alltoall = MPI_Alltoall##suffix;                            \
  static constexpr auto p_alltoall = PMPI_Alltoall##suffix;                         \
  static constexpr auto alltoallv = MPI_Alltoallv##suffix;                          \
  static constexpr auto p_alltoallv = PMPI_Alltoallv##suffix;
struct IntCounts {
  using Count = int;
  using Place = int;
  RONDO_TEST_FUNCTIONS()
};
#ifdef RONDO_TEST_LARGE_COUNTS
struct LargeCounts {
  using Count = MPI_Count;
  using Place = MPI_Aint;
  RONDO_TEST_FUNCTIONS(_c)
};
#endif
#undef RONDO_TEST_FUNCTIONS

// Every collective that reduces. `input`: so many elements of this rank. `fill`: what is in outputs
// before.
template <class Api>
void reductions_by(const Group& group, const std::string& of, MPI_Datatype type, std::size_t extent,
                   MPI_Op op, const std::function<Bytes(std::size_t)>& input,
                   unsigned char fill = 7) {
  const auto n = static_cast<std::size_t>(group.size);
  for (const std::size_t count : {0U, 1U, 7U, 3000U}) {
    const auto elems = static_cast<typename Api::Count>(count);
    const std::size_t bytes = count * extent;
    for (const bool in_place : {false, true}) {
      // The first half of the buffer is the input, the second the output.
      const auto sources = [=](unsigned char* buffer) {
        return in_place ? MPI_IN_PLACE : static_cast<void*>(buffer);
      };
      const Bytes before =
          in_place ? joined(Bytes(bytes), input(count)) : joined(input(count), Bytes(bytes, fill));
      compare(
          group, text("Allreduce", of, count, in_place), before,
          [&](unsigned char* b) {
            return Api::allreduce(sources(b), b + bytes, elems, type, op, group.comm);
          },
          [&](unsigned char* b) {
            return Api::p_allreduce(sources(b), b + bytes, elems, type, op, group.comm);
          });
      const auto later = [&](auto start) {
        return [&, start](unsigned char* b) {
          MPI_Request request = MPI_REQUEST_NULL;
          const int code = start(sources(b), b + bytes, elems, type, op, group.comm, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          return code;
        };
      };
      compare(group, text("Iallreduce", of, count, in_place), before, later(Api::iallreduce),
              later(Api::p_iallreduce));
      for (int root = 0; root < group.size; root += 2) {
        const bool is_root = group.rank == root;
        const auto source = [=](unsigned char* buffer) {
          if (!in_place) return static_cast<void*>(buffer);
          return is_root ? MPI_IN_PLACE : static_cast<void*>(buffer + bytes);
        };
        const auto target = [=](unsigned char* buffer) {
          return is_root ? buffer + bytes : nullptr;
        };
        compare(
            group, text("Reduce", of, count, in_place), before,
            [&](unsigned char* b) {
              return Api::reduce(source(b), target(b), elems, type, op, root, group.comm);
            },
            [&](unsigned char* b) {
              return Api::p_reduce(source(b), target(b), elems, type, op, root, group.comm);
            });
      }
      std::vector<typename Api::Count> counts;
      for (std::size_t rank = 0; rank < n; ++rank) {
        counts.push_back(static_cast<typename Api::Count>(count * (rank % 3)));
      }
      std::size_t all = 0;
      for (const auto one : counts) all += static_cast<std::size_t>(one);
      // What is beyond a rank's own part of the output in place is unspecified afterwards.
      const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(group.rank)]);
      const auto cut = [](unsigned char* b, std::size_t from, std::size_t to) {
        std::memset(b + from, 0, to - from);
      };
      const auto whole =
          in_place ? joined(Bytes(), input(all)) : joined(input(all), Bytes(own * extent, fill));
      const std::size_t out_at = in_place ? 0 : all * extent;
      const auto scatter = [&](auto function) {
        return [&, function](unsigned char* b) {
          const int code = function(sources(b), b + out_at, counts.data(), type, op, group.comm);
          if (in_place) cut(b, own * extent, all * extent);
          return code;
        };
      };
      compare(group, text("Reduce_scatter", of, count, in_place), whole,
              scatter(Api::reduce_scatter), scatter(Api::p_reduce_scatter));
      const Bytes block =
          in_place ? input(n * count) : joined(input(n * count), Bytes(bytes, fill));
      const std::size_t block_at = in_place ? 0 : n * bytes;
      const auto scatter_block = [&](auto function) {
        return [&, function](unsigned char* b) {
          const int code = function(sources(b), b + block_at, elems, type, op, group.comm);
          if (in_place) cut(b, bytes, n * bytes);
          return code;
        };
      };
      compare(group, text("Reduce_scatter_block", of, count, in_place), block,
              scatter_block(Api::reduce_scatter_block), scatter_block(Api::p_reduce_scatter_block));
    }
  }
}

void reductions(const Group& group, const std::string& of, MPI_Datatype type, std::size_t extent,
                MPI_Op op, const std::function<Bytes(std::size_t)>& input, unsigned char fill = 7) {
  reductions_by<IntCounts>(group, of, type, extent, op, input, fill);
#ifdef RONDO_TEST_LARGE_COUNTS
  reductions_by<LargeCounts>(group, of + ", large counts", type, extent, op, input, fill);
#endif
}

struct NamedOp {
  MPI_Op op;
  const char* name;
};
const NamedOp kArithmetic[] = {
    {MPI_SUM, "sum"}, {MPI_PROD, "prod"}, {MPI_MIN, "min"}, {MPI_MAX, "max"}};
const NamedOp kBits[] = {{MPI_BAND, "band"}, {MPI_BOR, "bor"}, {MPI_BXOR, "bxor"}};
const NamedOp kLogic[] = {{MPI_LAND, "land"}, {MPI_LOR, "lor"}, {MPI_LXOR, "lxor"}};

// In MPICH 4.0.2, the less of 1 and 200 is 200 for MPI_UINT8_T.
bool mpi_compares_unsigned_numbers() {
  const unsigned char one = 1;
  unsigned char less = 200;
  PMPI_Reduce_local(&one, &less, 1, MPI_UINT8_T, MPI_MIN);
  return less == 1;
}

template <class T, std::size_t n>
void by(const Group& group, MPI_Datatype type, const char* type_name, const NamedOp (&ops)[n]) {
  static const bool all = mpi_compares_unsigned_numbers();
  for (const NamedOp& one : ops) {
    if (!all && std::is_unsigned_v<T> && (one.op == MPI_MIN || one.op == MPI_MAX)) continue;
    reductions(group, std::string(type_name) + " " + one.name, type, sizeof(T), one.op,
               [&](std::size_t count) { return values<T>(group.rank, count, one.op == MPI_PROD); });
  }
}

template <class T>
void integers(const Group& group, MPI_Datatype type, const char* name) {
  by<T>(group, type, name, kArithmetic);
  by<T>(group, type, name, kBits);
  by<T>(group, type, name, kLogic);
}

template <class T>
void complex_numbers(const Group& group, MPI_Datatype type, const char* name) {
  for (const NamedOp& one : {kArithmetic[0], kArithmetic[1]}) {
    reductions(group, std::string(name) + " " + one.name, type, sizeof(T), one.op,
               [&](std::size_t count) {
                 using Part = typename T::value_type;
                 return values<Part>(group.rank, 2 * count, one.op == MPI_PROD);
               });
  }
}

// Pairs of a value and a rank, in which values are often equal. Bytes between the two belong to
// neither, so they begin as 0 everywhere.
template <class T>
void locations(const Group& group, MPI_Datatype type, const char* name) {
  struct Pair {
    T value;
    int index;
  };
  for (const NamedOp& one : {NamedOp{MPI_MINLOC, "minloc"}, NamedOp{MPI_MAXLOC, "maxloc"}}) {
    reductions(
        group, std::string(name) + " " + one.name, type, sizeof(Pair), one.op,
        [&](std::size_t count) {
          Bytes bytes(count * sizeof(Pair));
          for (std::size_t i = 0; i < count; ++i) {
            Pair pair;
            std::memset(&pair, 0, sizeof(pair));
            pair.value = static_cast<T>(mix(i * 64 + static_cast<std::size_t>(group.rank)) % 4);
            pair.index = 10 * group.rank + static_cast<int>(i % 3);
            std::memcpy(bytes.data() + i * sizeof(Pair), &pair, sizeof(pair));
          }
          return bytes;
        },
        0);
  }
}

// (a, b) is x -> a x + b: "after" does not commute.
void after(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const std::uint32_t*>(in);
  auto* b = static_cast<std::uint32_t*>(in_out);
  for (int i = 0; i < 2 * *count; i += 2) {
    b[i + 1] = a[i] * b[i + 1] + a[i + 1];
    b[i] = a[i] * b[i];
  }
}
void add(void* in, void* in_out, int* count, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const std::uint32_t*>(in);
  auto* b = static_cast<std::uint32_t*>(in_out);
  for (int i = 0; i < 2 * *count; ++i) b[i] += a[i];
}

void operations_of_the_program(const Group& group) {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
  MPI_Type_commit(&pair);
  for (const bool commutes : {true, false}) {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(commutes ? add : after, commutes ? 1 : 0, &op);
    reductions(group, commutes ? "pairs, added" : "pairs, one after the other", pair, 8, op,
               [&](std::size_t count) { return values<std::uint32_t>(group.rank, 2 * count); });
    MPI_Op_free(&op);
  }
  MPI_Type_free(&pair);
}

// Every collective that moves elements of 4 bytes. `gaps`: as every second int of the buffers.
template <class Api>
void moves(const Group& group, bool gaps) {
  using Count = typename Api::Count;
  using Place = typename Api::Place;
  MPI_Datatype type = MPI_INT;
  if (gaps) {
    MPI_Datatype with_gap = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(MPI_INT, 0, 8, &with_gap);
    MPI_Type_commit(&with_gap);
    type = with_gap;
  }
  const std::size_t extent = gaps ? 8 : 4;
  const auto n = static_cast<std::size_t>(group.size);
  const std::string of = gaps ? "ints with gaps" : "ints";
  for (const std::size_t count : {0U, 1U, 5U, 6000U}) {
    const auto elems = static_cast<Count>(count);
    const std::size_t part = count * extent;
    const std::size_t whole = n * part;
    const auto mine = [&](std::size_t bytes) { return values<unsigned char>(group.rank, bytes); };
    // Two buffers of the whole vector. MPICH says that empty ones at the same place were aliased.
    const std::size_t second = whole + 8;
    const Bytes two = joined(mine(second), mine(whole));
    for (int root = 0; root < group.size; ++root) {
      const bool is_root = group.rank == root;
      const auto bcast = [&](auto function) {
        return
            [&, function](unsigned char* b) { return function(b, elems, type, root, group.comm); };
      };
      compare(group, text("Bcast", of, count, false), mine(part), bcast(Api::bcast),
              bcast(Api::p_bcast));
      for (const bool in_place : {false, true}) {
        const bool here = in_place && is_root;
        const auto gather = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(here ? MPI_IN_PLACE : b, elems, type, b + second, elems, type, root,
                            group.comm);
          };
        };
        compare(group, text("Gather", of, count, in_place), two, gather(Api::gather),
                gather(Api::p_gather));
        const auto scatter = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(b, elems, type, here ? MPI_IN_PLACE : b + second, elems, type, root,
                            group.comm);
          };
        };
        compare(group, text("Scatter", of, count, in_place), two, scatter(Api::scatter),
                scatter(Api::p_scatter));
        // In reverse order, with the parts of odd ranks empty, and a place free between parts.
        std::vector<Count> counts(n);
        std::vector<Place> places(n);
        for (std::size_t rank = 0; rank < n; ++rank) {
          counts[rank] = rank % 2 == 1 || count == 0 ? 0 : elems - 1;
          places[rank] = static_cast<Place>((n - 1 - rank) * count);
        }
        const Count own = counts[static_cast<std::size_t>(group.rank)];
        const auto gather_v = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(here ? MPI_IN_PLACE : b, own, type, b + second, counts.data(),
                            places.data(), type, root, group.comm);
          };
        };
        compare(group, text("Gatherv", of, count, in_place), two, gather_v(Api::gatherv),
                gather_v(Api::p_gatherv));
        const auto scatter_v = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(b, counts.data(), places.data(), type, here ? MPI_IN_PLACE : b + second,
                            own, type, root, group.comm);
          };
        };
        compare(group, text("Scatterv", of, count, in_place), two, scatter_v(Api::scatterv),
                scatter_v(Api::p_scatterv));
      }
    }
    for (const bool in_place : {false, true}) {
      const auto from = [=](unsigned char* b) {
        return in_place ? MPI_IN_PLACE : static_cast<void*>(b);
      };
      const auto gather = [&](auto function) {
        return [&, function](unsigned char* b) {
          return function(from(b), elems, type, b + second, elems, type, group.comm);
        };
      };
      compare(group, text("Allgather", of, count, in_place), two, gather(Api::allgather),
              gather(Api::p_allgather));
      compare(group, text("Alltoall", of, count, in_place), two, gather(Api::alltoall),
              gather(Api::p_alltoall));
      for (const bool in_order : {true, false}) {
        std::vector<Count> counts(n);
        std::vector<Place> places(n);
        Place next = 0;
        for (std::size_t rank = 0; rank < n; ++rank) {
          counts[rank] = count == 0 ? 0 : elems - static_cast<Count>(rank % 2);
          places[rank] = in_order ? next : static_cast<Place>((n - 1 - rank) * count);
          next += counts[rank];
        }
        const Count own = counts[static_cast<std::size_t>(group.rank)];
        const auto gather_v = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(from(b), own, type, b + second, counts.data(), places.data(), type,
                            group.comm);
          };
        };
        compare(group, text("Allgatherv", of, count, in_place), two, gather_v(Api::allgatherv),
                gather_v(Api::p_allgatherv));
        // Between two ranks both ways the same number, as in place needs.
        std::vector<Count> each(n);
        for (std::size_t rank = 0; rank < n; ++rank) {
          const auto sum = static_cast<int>(rank) + group.rank;
          each[rank] = count == 0 ? 0 : elems - sum % 2;
          places[rank] = static_cast<Place>(in_order ? rank * count : (n - 1 - rank) * count);
        }
        const auto all_to_all_v = [&](auto function) {
          return [&, function](unsigned char* b) {
            return function(from(b), each.data(), places.data(), type, b + second, each.data(),
                            places.data(), type, group.comm);
          };
        };
        compare(group, text("Alltoallv", of, count, in_place), two, all_to_all_v(Api::alltoallv),
                all_to_all_v(Api::p_alltoallv));
      }
    }
  }
  if (gaps) MPI_Type_free(&type);
}

// Ranks pass datatypes that differ, and match: ints on some, pairs of ints on others.
void matching_types(const Group& group) {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  const bool pairs = group.rank % 2 == 1;
  const auto bcast = [&](auto function) {
    return [&, function](unsigned char* b) {
      return function(b, pairs ? 50 : 100, pairs ? pair : MPI_INT, 0, group.comm);
    };
  };
  compare(group, "Bcast of matching types", values<int>(group.rank, 100), bcast(MPI_Bcast),
          bcast(PMPI_Bcast));
  MPI_Type_free(&pair);

  // The same bytes as two ints, which are sent in the other order; on odd ranks.
  MPI_Datatype swapped = MPI_DATATYPE_NULL;
  const int lengths[] = {1, 1};
  const int places[] = {1, 0};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &swapped);
  MPI_Type_commit(&swapped);
  const auto n = static_cast<std::size_t>(group.size);
  const Bytes two = joined(values<int>(group.rank, 20), Bytes(n * 80, 7));
  const auto gather = [&](auto function) {
    return [&, function](unsigned char* b) {
      return function(b, pairs ? 10 : 20, pairs ? swapped : MPI_INT, b + 80, 20, MPI_INT,
                      group.comm);
    };
  };
  compare(group, "Allgather of swapped pairs", two, gather(MPI_Allgather), gather(PMPI_Allgather));
  const auto bcast_swapped = [&](auto function) {
    return [&, function](unsigned char* b) {
      return function(b, pairs ? 10 : 20, pairs ? swapped : MPI_INT, 0, group.comm);
    };
  };
  compare(group, "Bcast of swapped pairs", values<int>(group.rank, 20), bcast_swapped(MPI_Bcast),
          bcast_swapped(PMPI_Bcast));
  MPI_Type_free(&swapped);
}

#ifdef RONDO_TEST_LARGE_COUNTS
// A type that only the functions for MPI_Count can look into.
void types_by_large_counts(const Group& group) {
  for (const bool gaps : {false, true}) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (gaps) {
      MPI_Type_vector_c(2, 1, 2, MPI_INT, &type);
    } else {
      MPI_Type_contiguous_c(3, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    const auto bcast = [&](auto function) {
      return [&, function](unsigned char* b) { return function(b, 50, type, 0, group.comm); };
    };
    compare(group, "Bcast_c of a type by MPI_Count", values<int>(group.rank, 200),
            bcast(MPI_Bcast_c), bcast(PMPI_Bcast_c));
    MPI_Type_free(&type);
  }
}
#endif

// The place of a part without elements says nothing, and nothing is written there.
void places_of_empty_parts(const Group& group) {
  const auto n = static_cast<std::size_t>(group.size);
  std::vector<int> counts(n, 5);
  std::vector<int> places(n);
  counts.front() = 0;
  places.front() = 3;
  for (std::size_t rank = 1; rank < n; ++rank) places[rank] = static_cast<int>(5 * (rank - 1));
  const int own = counts[static_cast<std::size_t>(group.rank)];
  const std::size_t half = (5 * n + 10) * 4;
  const Bytes two = joined(values<int>(group.rank, 5 * n + 10), Bytes(half, 7));
  const auto gather = [&](auto function) {
    return [&, function](unsigned char* b) {
      return function(b, own, MPI_INT, b + half, counts.data(), places.data(), MPI_INT, group.comm);
    };
  };
  compare(group, "Allgatherv with an empty part", two, gather(MPI_Allgatherv),
          gather(PMPI_Allgatherv));
  // Nothing goes between rank 0 and the others.
  std::vector<int> each(n, group.rank == 0 ? 0 : 5);
  each.front() = 0;
  const auto all_to_all = [&](auto function) {
    return [&, function](unsigned char* b) {
      return function(b, each.data(), places.data(), MPI_INT, b + half, each.data(), places.data(),
                      MPI_INT, group.comm);
    };
  };
  compare(group, "Alltoallv with empty parts", two, all_to_all(MPI_Alltoallv),
          all_to_all(PMPI_Alltoallv));
}

// Several at once, with an operation that is freed meanwhile, waited for in another order.
void requests(const Group& group) {
  constexpr int kCalls = 6;
  constexpr std::size_t kElems = 1000;
  constexpr int kPairs = 1000;
  std::vector<std::vector<std::uint32_t>> sums(kCalls, std::vector<std::uint32_t>(2 * kElems));
  std::vector<MPI_Request> started(kCalls, MPI_REQUEST_NULL);
  const Bytes bytes = values<std::uint32_t>(group.rank, 2 * kElems);
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
  MPI_Type_commit(&pair);
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(add, 1, &op);
  for (std::size_t call = 0; call < kCalls; ++call) {
    if (call % 2 == 0) {
      MPI_Iallreduce(bytes.data(), sums[call].data(), 2 * kPairs, MPI_UINT32_T, MPI_SUM, group.comm,
                     &started[call]);
    } else {
      MPI_Iallreduce(bytes.data(), sums[call].data(), kPairs, pair, op, group.comm, &started[call]);
    }
  }
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  if (MPI_Wait(&started.back(), MPI_STATUS_IGNORE) != MPI_SUCCESS) ++failures;
  if (MPI_Waitall(kCalls, started.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS) ++failures;
  std::vector<std::uint32_t> expected(2 * kElems);
  PMPI_Allreduce(bytes.data(), expected.data(), 2 * kPairs, MPI_UINT32_T, MPI_SUM, group.comm);
  for (const auto& sum : sums) failures += sum == expected ? 0 : 1;
  compared += kCalls;
}

// Calls of a communicator that are not in the same order as those of another, or as messages:
// legal, since they do not wait for other ranks.
void crossed_requests(const Group& group) {
  MPI_Comm one = MPI_COMM_NULL;
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(group.comm, &one);
  MPI_Comm_dup(group.comm, &other);
  const MPI_Comm comms[] = {group.rank % 2 == 0 ? one : other, group.rank % 2 == 0 ? other : one};
  std::vector<float> in(1 << 19, 1.0F);
  std::vector<float> out[] = {std::vector<float>(in.size()), std::vector<float>(in.size())};
  MPI_Request started[2];
  for (const std::size_t i : {0U, 1U}) {
    MPI_Iallreduce(in.data(), out[i].data(), static_cast<int>(in.size()), MPI_FLOAT, MPI_SUM,
                   comms[i], &started[i]);
  }
  MPI_Waitall(2, started, MPI_STATUSES_IGNORE);
  for (const auto& sums : out) failures += sums.back() == static_cast<float>(group.size) ? 0 : 1;
  compared += 2;
  MPI_Comm_free(&one);
  MPI_Comm_free(&other);
}

// What an attribute of the program sees of copies and deletions.
int copies = 0;
int deletions = 0;
int copied(MPI_Comm, int, void*, void*, void*, int* flag) {
  ++copies;
  *flag = 1;
  return MPI_SUCCESS;
}
int deleted(MPI_Comm, int, void*, void*) {
  ++deletions;
  return MPI_SUCCESS;
}
void attributes() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copied, deleted, &key, nullptr);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_attr(comm, key, nullptr);
  for (int call = 0; call < 40; ++call) MPI_Barrier(comm);  // in one of which ranks are joined
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);
  if (copies != 0 || deletions != 1) {
    ++failures;
    std::fprintf(stderr, "%d copies and %d deletions of an attribute\n", copies, deletions);
  }
}

// A root that contradicts itself: MPI_SUCCESS from no rank, and a text that says why.
void errors(const Group& world) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int call = 0; call < 40; ++call) MPI_Barrier(comm);
  std::vector<int> counts(static_cast<std::size_t>(world.size), 2);
  std::vector<int> places(counts.size());
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    places[rank] = static_cast<int>(2 * rank);
  std::vector<int> all(2 * counts.size());
  const int mine[] = {1, 2, 3};
  int code = MPI_Gatherv(mine, world.rank == 0 ? 3 : 2, MPI_INT, all.data(), counts.data(),
                         places.data(), MPI_INT, 0, comm);
  if (world.rank != 0) code = MPI_Barrier(comm);  // a message may have been sent before
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  if (std::string(text).find("the root sends 12 bytes to itself") == std::string::npos) {
    ++failures;
    std::fprintf(stderr, "rank %d got code %d: %s\n", world.rank, code, text);
  }
  MPI_Comm_free(&comm);
}

// Messages of MPI that are under way while Rondo works.
void between_messages(const Group& group) {
  const int to = (group.rank + 1) % group.size;
  const int from = (group.rank + group.size - 1) % group.size;
  std::vector<int> sent(200'000, group.rank);
  std::vector<int> received(sent.size(), -1);
  MPI_Request requests[2];
  MPI_Irecv(received.data(), static_cast<int>(received.size()), MPI_INT, from, 3, group.comm,
            &requests[0]);
  MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_INT, to, 3, group.comm, &requests[1]);
  for (int round = 0; round < 20; ++round) {
    int one = 1;
    int sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, group.comm);
    if (sum != group.size) ++failures;
    MPI_Barrier(group.comm);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (const int one : received) failures += one == from ? 0 : 1;
  ++compared;
}

void all(const Group& group) {
  for (const bool gaps : {false, true}) {
    moves<IntCounts>(group, gaps);
#ifdef RONDO_TEST_LARGE_COUNTS
    moves<LargeCounts>(group, gaps);
#endif
  }
  matching_types(group);
  places_of_empty_parts(group);
  requests(group);
#ifdef RONDO_TEST_LARGE_COUNTS
  types_by_large_counts(group);
#endif
  between_messages(group);
  integers<std::int8_t>(group, MPI_INT8_T, "int8");
  integers<std::uint8_t>(group, MPI_UINT8_T, "uint8");
  integers<std::int16_t>(group, MPI_INT16_T, "int16");
  integers<std::uint16_t>(group, MPI_UINT16_T, "uint16");
  integers<int>(group, MPI_INT, "int");
  integers<unsigned>(group, MPI_UNSIGNED, "unsigned");
  integers<long>(group, MPI_LONG, "long");
  integers<unsigned long long>(group, MPI_UNSIGNED_LONG_LONG, "unsigned long long");
  by<float>(group, MPI_FLOAT, "float", kArithmetic);
  by<double>(group, MPI_DOUBLE, "double", kArithmetic);
  by<long double>(group, MPI_LONG_DOUBLE, "long double", {kArithmetic[0]});
  by<bool>(group, MPI_C_BOOL, "bool", kLogic);
  by<unsigned char>(group, MPI_BYTE, "byte", kBits);
  complex_numbers<std::complex<float>>(group, MPI_C_FLOAT_COMPLEX, "float complex");
  complex_numbers<std::complex<double>>(group, MPI_C_DOUBLE_COMPLEX, "double complex");
  locations<float>(group, MPI_FLOAT_INT, "float and int");
  locations<double>(group, MPI_DOUBLE_INT, "double and int");
  locations<int>(group, MPI_2INT, "2 ints");
  locations<long>(group, MPI_LONG_INT, "long and int");
  locations<short>(group, MPI_SHORT_INT, "short and int");
  operations_of_the_program(group);
}

Group group_of(MPI_Comm comm, const char* name) {
  Group group{comm, name};
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  return group;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string threads = argc > 1 ? argv[1] : "one_thread";
  const bool under_rondo = argc > 2;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv,
                  threads == "threads"      ? MPI_THREAD_MULTIPLE
                  : threads == "serialized" ? MPI_THREAD_SERIALIZED
                                            : MPI_THREAD_SINGLE,
                  &level);
  const Group world = group_of(MPI_COMM_WORLD, "the world");
  if (world.rank == 0 && !mpi_compares_unsigned_numbers()) {
    std::printf("not compared: minima of unsigned numbers, which this MPI gets wrong\n");
  }
  all(world);
  MPI_Comm backwards = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, -world.rank, &backwards);
  all(group_of(backwards, "every second rank, backwards"));
  // A duplicate is a communicator of its own; it is freed, and made again.
  for (int round = 0; round < 3; ++round) {
    MPI_Comm again = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    moves<IntCounts>(group_of(again, "a duplicate"), false);
    MPI_Comm_free(&again);
  }
  crossed_requests(world);
  attributes();
  if (under_rondo && world.size > 1 && threads != "serialized") errors(world);
  int all_failures = 0;
  PMPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world.rank == 0) {
    std::printf("%ld answers compared on rank 0, %d differ on all ranks\n", compared, all_failures);
  }
  MPI_Comm_free(&backwards);
  MPI_Finalize();
  return all_failures == 0 ? 0 : 1;
}
