// rondo-beside: all-reduces of ranks on one GPU beside matrix products, alone and together, for
// several numbers of channels. It shows what the blocks of Rondo's kernels, which wait on the
// device, leave to a program's own kernels.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <rondo/version.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rondo::beside {
namespace {

struct Options {
  int ranks = 2;
  int side = 4096;
  int products = 8;
  int calls = 8;
  std::size_t bytes = std::size_t{64} << 20U;
  std::string algorithm = "auto";
  std::vector<int> channels = {0, 128, 96, 64, 48, 32, 16, 8};
  int repetitions = 11;
};

void check(cudaError_t code) {
  if (code != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}
void check(cublasStatus_t code) {
  if (code != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string("cuBLAS: ") + cublasGetStatusString(code));
  }
}

class Stream {
 public:
  explicit Stream(int priority) {
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
    check(cudaEventCreate(&end_));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait_for(cudaEvent_t event) const { check(cudaStreamWaitEvent(stream_, event, 0)); }
  void mark_end() const { check(cudaEventRecord(end_, stream_)); }
  [[nodiscard]] double us_since(cudaEvent_t start) const {
    check(cudaEventSynchronize(end_));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, end_));
    return 1e3 * static_cast<double>(ms);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Products of square bf16 matrices, summed in f32.
class Products {
 public:
  explicit Products(int side) : side_(side), stream_(0) {
    const std::size_t elements = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
    for (void*& matrix : matrices_) {
      check(cudaMalloc(&matrix, 2 * elements));
      check(cudaMemset(matrix, 0, 2 * elements));
    }
    check(cublasCreate(&handle_));
    check(cublasSetStream(handle_, stream_.get()));
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products() {
    cublasDestroy(handle_);
    for (void* matrix : matrices_) cudaFree(matrix);
  }
  [[nodiscard]] const Stream& stream() const { return stream_; }
  void enqueue() const {
    const float one = 1;
    const float zero = 0;
    check(cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, side_, side_, side_, &one, matrices_[0],
                       CUDA_R_16BF, side_, matrices_[1], CUDA_R_16BF, side_, &zero, matrices_[2],
                       CUDA_R_16BF, side_, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

 private:
  int side_;
  Stream stream_;
  cublasHandle_t handle_ = nullptr;
  void* matrices_[3] = {};
};

int highest_priority() {
  int lowest = 0;
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  return highest;
}

struct Rank {
  cuda::Communicator comm;
  std::unique_ptr<Products> products;
  std::unique_ptr<Stream> stream;
  float* data = nullptr;
};

struct Times {
  double products_us = 0;
  double calls_us = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// One thread drives all ranks: an event starts all streams, and the slowest rank counts.
class Bench {
 public:
  Bench(const Options& options, int channels) : options_(options), gate_(0) {
    const cuda::Options device_options{.device = 0, .channels = channels};
    const std::vector<int> devices(static_cast<std::size_t>(options.ranks), 0);
    for (cuda::Communicator& comm : cuda::local_group(devices, device_options)) {
      Rank& rank =
          ranks_.emplace_back(Rank{std::move(comm), std::make_unique<Products>(options.side),
                                   std::make_unique<Stream>(highest_priority())});
      check(cudaMalloc(reinterpret_cast<void**>(&rank.data), options.bytes));
      check(cudaMemset(rank.data, 0, options.bytes));
    }
    check(cudaEventCreate(&start_));
    check(cudaDeviceSynchronize());
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    cudaDeviceSynchronize();
    cudaEventDestroy(start_);
    for (const Rank& rank : ranks_) cudaFree(rank.data);
  }

  [[nodiscard]] int channels() const { return ranks_.front().comm.channels(); }

  // Medians of `products` and `calls` on each rank, enqueued in turn.
  Times measure(int products, int calls) {
    std::vector<double> products_us;
    std::vector<double> calls_us;
    for (int i = 0; i <= options_.repetitions; ++i) {
      const Times times = once(products, calls);
      if (i == 0) continue;  // warms up
      products_us.push_back(times.products_us);
      calls_us.push_back(times.calls_us);
    }
    return {median(products_us), median(calls_us)};
  }

 private:
  Times once(int products, int calls) {
    check(cudaEventRecord(start_, gate_.get()));
    for (const Rank& rank : ranks_) {
      rank.products->stream().wait_for(start_);
      rank.stream->wait_for(start_);
    }
    for (int i = 0; i < std::max(products, calls); ++i) {
      for (Rank& rank : ranks_) {
        if (i < products) rank.products->enqueue();
        if (i < calls) enqueue_call(rank);
      }
    }
    Times times;
    for (const Rank& rank : ranks_) {
      rank.products->stream().mark_end();
      rank.stream->mark_end();
    }
    for (Rank& rank : ranks_) {
      times.products_us = std::max(times.products_us, rank.products->stream().us_since(start_));
      times.calls_us = std::max(times.calls_us, rank.stream->us_since(start_));
      rank.comm.check();
    }
    return times;
  }
  void enqueue_call(Rank& rank) {
    CallOptions call;
    call.algorithm = algorithm_named(options_.algorithm);
    rank.comm.all_reduce(std::span(rank.data, options_.bytes / sizeof(float)), ReduceOp::sum,
                         rank.stream->get(), call);
  }

  const Options& options_;
  Stream gate_;
  std::vector<Rank> ranks_;
  cudaEvent_t start_ = nullptr;
};

void run(const Options& options) {
  fmt::print(
      "# {} ranks on one GPU, each: {} products of {} x {} bf16 matrices, {} all-reduces of {} "
      "bytes by {}\n",
      options.ranks, options.products, options.side, options.side, options.calls, options.bytes,
      options.algorithm);
  fmt::print(
      "# us, medians of {}; all: until both have ended; hidden: how much of the shorter "
      "one ran beside the other; below 0, both were slower\n",
      options.repetitions);
  fmt::print("{:>8} {:>16} {:>13} {:>18} {:>15} {:>9} {:>7}\n", "channels", "products alone",
             "calls alone", "products together", "calls together", "all", "hidden");
  for (const int channels : options.channels) {
    Bench bench(options, channels);
    const Times products = bench.measure(options.products, 0);
    const Times calls = bench.measure(0, options.calls);
    const Times both = bench.measure(options.products, options.calls);
    const double all = std::max(both.products_us, both.calls_us);
    const double hidden = (products.products_us + calls.calls_us - all) /
                          std::min(products.products_us, calls.calls_us);
    fmt::print("{:>8} {:>16.0f} {:>13.0f} {:>18.0f} {:>15.0f} {:>9.0f} {:>7.2f}\n",
               bench.channels(), products.products_us, calls.calls_us, both.products_us,
               both.calls_us, all, hidden);
    std::fflush(stdout);
  }
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app("Measures all-reduces of ranks on one GPU beside matrix products.", "rondo-beside");
  app.add_option("--ranks", options.ranks, "ranks, all on the first GPU")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--side", options.side, "rows and columns of the matrices")
      ->check(CLI::Range(64, 32768))
      ->capture_default_str();
  app.add_option("--products", options.products, "products of each rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--calls", options.calls, "all-reduces of each rank, at most 32")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("-b,--bytes", options.bytes, "bytes of an all-reduce")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--algo", options.algorithm, "how all-reduces are carried out")
      ->check(CLI::IsMember({"auto", "ring", "naive", "one_shot", "direct"}))
      ->capture_default_str();
  app.add_option("--channels", options.channels, "cuda::Options::channels, one row each; 0: chosen")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-n,--repetitions", options.repetitions, "repetitions of each measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.set_version_flag("--version", RONDO_VERSION);
  CLI11_PARSE(app, argc, argv);
  run(options);
  return 0;
}

}  // namespace
}  // namespace rondo::beside

int main(int argc, char** argv) {
  try {
    return rondo::beside::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rondo-beside: {}\n", error.what());
    return 1;
  }
}
