// Trains a convolutional network of libtorch on several ranks, each of which has images of its own.
// Gradients are averaged by Rondo while the backward pass computes the next ones, or, to compare,
// by one blocking MPI call for each parameter after it.
//
// usage: mpirun -n 2 ./train rondo|mpi [STEPS [WIDTH]]
#include <mpi.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <rondo/rondo.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

using Tensors = std::vector<torch::Tensor>;

// -------- Data-parallel by Rondo: what a training loop of its own would take from here --------

// Averages the gradients of `parameters` over the ranks. All ranks begin with rank 0's values.
class RondoAverage {
 public:
  RondoAverage(rondo::Communicator& comm, Tensors parameters)
      : parameters_(std::move(parameters)), reducer_(comm, as_rondo_knows(parameters_)) {
    bind_gradients();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters_[i]));
      accumulators_[i]->add_post_hook(std::make_unique<Mark>(reducer_, i));
    }
  }

  RondoAverage(const RondoAverage&) = delete;
  RondoAverage& operator=(const RondoAverage&) = delete;
  // No backward pass may follow, since autograd still knows the marks.
  ~RondoAverage() {
    for (const torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
  }

  // After backward(). Waits until the averages are in the parameters' gradients.
  void finish() {
    reducer_.finish();
    if (layout_ != reducer_.layout()) bind_gradients();
  }

 private:
  // Autograd runs it when it has added to a parameter's gradient. As in torch's own
  // DistributedDataParallel, it belongs to the function that adds, which the parameter does not
  // own.
  class Mark : public torch::autograd::FunctionPostHook {
   public:
    Mark(rondo::GradientReducer& reducer, std::size_t parameter)
        : reducer_(reducer), parameter_(parameter) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      reducer_.mark_ready(parameter_);
      return outputs;
    }

   private:
    rondo::GradientReducer& reducer_;
    std::size_t parameter_;
  };

  static std::vector<rondo::Parameter> as_rondo_knows(const Tensors& parameters) {
    std::vector<rondo::Parameter> known;
    for (const torch::Tensor& parameter : parameters) {
      const std::span values(parameter.data_ptr<float>(),
                             static_cast<std::size_t>(parameter.numel()));
      known.push_back(rondo::Parameter::owned("parameter " + std::to_string(known.size()), values));
    }
    return known;
  }

  // Gradients are where Rondo sums them, so that nothing is copied. They move at most once, at the
  // end of the first iteration.
  void bind_gradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      float* const memory = reducer_.gradient<float>(i).data();
      parameters_[i].mutable_grad() = torch::from_blob(memory, parameters_[i].sizes());
    }
    layout_ = reducer_.layout();
  }

  Tensors parameters_;
  rondo::GradientReducer reducer_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  int layout_ = 0;
};

// -------- The same by MPI --------

void average_by_mpi(const Tensors& parameters, int size) {
  for (const torch::Tensor& parameter : parameters) {
    torch::Tensor gradient = parameter.grad();
    MPI_Allreduce(MPI_IN_PLACE, gradient.data_ptr<float>(), static_cast<int>(gradient.numel()),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    gradient /= size;
  }
}

// -------- What is trained --------

torch::nn::Sequential make_model(int width) {
  using namespace torch::nn;
  const auto halved = [] { return MaxPool2d(MaxPool2dOptions(2)); };
  return Sequential(Conv2d(1, 8 * width, 5), halved(), ReLU(), Conv2d(8 * width, 16 * width, 5),
                    halved(), ReLU(), Flatten(), Linear(16 * width * 16, 64 * width), ReLU(),
                    Linear(64 * width, 10));
}

// Images of 10 classes, of which each has a pattern that noise hides. Each rank has its own noise.
struct Batch {
  torch::Tensor images;
  torch::Tensor classes;
};
Batch make_batch(const torch::Tensor& patterns) {
  Batch batch;
  batch.classes = torch::randint(10, {32}, torch::kLong);
  batch.images = patterns.index_select(0, batch.classes) + torch::randn({32, 1, 28, 28});
  return batch;
}

// The same for two models that have the same bits.
std::uint64_t hash_of(const Tensors& parameters) {
  std::uint64_t hash = 14695981039346656037U;
  for (const torch::Tensor& parameter : parameters) {
    const std::size_t bytes = static_cast<std::size_t>(parameter.numel()) * sizeof(float);
    const std::span values(static_cast<const std::uint8_t*>(parameter.data_ptr()), bytes);
    for (const std::uint8_t byte : values) hash = (hash ^ byte) * 1099511628211U;
  }
  return hash;
}

struct Ranks {
  int rank = 0;
  int size = 1;
  // Makes what averages the gradients of these parameters after a backward pass.
  std::function<std::function<void()>(const Tensors&)> average;
};

void train(const Ranks& ranks, int steps, int width) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const torch::Tensor patterns = torch::randn({10, 1, 28, 28});
  torch::nn::Sequential model = make_model(width);
  const Tensors parameters = model->parameters();
  for (const torch::Tensor& parameter : parameters) {
    torch::Tensor(parameter).mutable_grad() = torch::zeros_like(parameter);
  }
  const std::function<void()> average = ranks.average(parameters);
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.02).momentum(0.9));
  torch::manual_seed(2 + static_cast<std::uint64_t>(ranks.rank));

  std::vector<double> milliseconds;
  double loss_at_start = 0, loss_at_end = 0;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = make_batch(patterns);
    const auto begin = std::chrono::steady_clock::now();
    // Set to zero, not given up: the memory of gradients is Rondo's.
    for (const torch::Tensor& parameter : parameters) parameter.grad().zero_();
    const torch::Tensor loss =
        torch::nn::functional::cross_entropy(model->forward(batch.images), batch.classes);
    loss.backward();
    average();
    optimizer.step();
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    milliseconds.push_back(taken.count());
    (step == 0 ? loss_at_start : loss_at_end) = loss.item<double>();
  }
  std::ranges::nth_element(milliseconds, milliseconds.begin() + steps / 2);
  std::printf("rank %d of %d: loss %.3f, after %d steps %.3f, median step %.3f ms, model %016llx\n",
              ranks.rank, ranks.size, loss_at_start, steps, loss_at_end,
              milliseconds[static_cast<std::size_t>(steps / 2)],
              static_cast<unsigned long long>(hash_of(parameters)));
}

void train_by_rondo(int steps, int width) {
  rondo::Communicator comm = rondo::from_environment();
  const auto average = [&comm](const Tensors& parameters) -> std::function<void()> {
    auto by_rondo = std::make_shared<RondoAverage>(comm, parameters);
    return [by_rondo] { by_rondo->finish(); };
  };
  train({comm.rank(), comm.size(), average}, steps, width);
}

void train_by_mpi(int steps, int width) {
  MPI_Init(nullptr, nullptr);
  Ranks ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  ranks.average = [&ranks](const Tensors& parameters) -> std::function<void()> {
    return [&ranks, parameters] { average_by_mpi(parameters, ranks.size); };
  };
  train(ranks, steps, width);
  MPI_Finalize();
}

int main(int argc, char** argv) {
  const std::string by = argc > 1 ? argv[1] : "";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  const int width = argc > 3 ? std::atoi(argv[3]) : 1;
  if ((by != "rondo" && by != "mpi") || steps < 2 || width < 1) {
    std::fprintf(stderr, "usage: mpirun -n 2 %s rondo|mpi [STEPS [WIDTH]]\n", argv[0]);
    return 2;
  }
  try {
    if (by == "rondo") {
      train_by_rondo(steps, width);
    } else {
      train_by_mpi(steps, width);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
