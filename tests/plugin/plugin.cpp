// What a program loads and unloads that has Rondo in it.
#include <chrono>
#include <vector>

#include <rondo/rondo.hpp>

// Joins, adds and leaves; 0 if the sum is right.
extern "C" int join_and_add(const char* url, int rank, int size, int by_ucx) {
  try {
    rondo::CommunicatorOptions options{.timeout = std::chrono::minutes(1)};
    if (by_ucx != 0) options.carrier = rondo::CarrierChoice::ucx;
    rondo::Communicator comm = rondo::from_store(url, rank, size, options);
    std::vector<int> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i) + rank;
    comm.all_reduce_async(values).wait();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != size * static_cast<int>(i) + size * (size - 1) / 2) return 1;
    }
    return 0;
  } catch (const rondo::Error&) {
    return 2;
  }
}
