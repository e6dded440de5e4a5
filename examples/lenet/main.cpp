// rondo-lenet: trains LeNet on Fashion-MNIST over ranks that are processes of a launcher, forked
// processes, or threads; on the CPU or on GPUs.

#include <memory>
#include <nlohmann/json.hpp>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <utility>

#include "examples/layers/compute_threads.hpp"
#include "examples/layers/equal_ranks.hpp"
#include "examples/layers/replace_file.hpp"
#include "report.hpp"
#include "run.hpp"
#include "summing.hpp"
#include "task.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"

namespace {

// `devices`: where the ranks compute on GPUs; else null.
void train_on(const lenet::Options& options, rondo::Communicator& comm,
              rondo::cuda::Communicator* devices) {
  const lenet::Task& task = lenet::lenet_task();
  const lenet::Job job{options, lenet::identity_of(options, task), comm, comm.rank() == 0};
  const auto start = lenet::open_files(job);
  const lenet::Dataset data = task.read(options.data.value_or(task.folder));
  lenet::require_equal_data(comm, data);
  const auto reducing = lenet::gradient_options(options, task);
  const lenet::LearnerOptions& learning = options.training.learner;

  lenet::SummedLearner on_cpu;
  std::unique_ptr<lenet::Learner> on_gpu;
  if (devices == nullptr) {
    on_cpu =
        lenet::make_summed_learner(task, data, learning, comm, reducing, options.algo == "mpi");
  } else {
    on_gpu = lenet::make_cuda_learner(task, data, learning, *devices, reducing);
  }
  lenet::Learner& learner = on_gpu ? *on_gpu : *on_cpu.learner;
  lenet::Updates updates(comm, learner);
  lenet::Run run = lenet::run_epochs(job, data, learner, updates, start);

  if (job.first) lenet::print(run, data.train.count(), lenet::kByRing);
  lenet::write_trace(options, on_cpu.reducer.get(), run);
  if (!job.first || options.history.empty()) return;
  lenet::replace_file(options.history, lenet::history_of(options, run).dump(2) + "\n");
}

void train(const lenet::Options& named, rondo::Communicator ranks) {
  lenet::require_equal_settings(ranks, named.settings);
  lenet::require_summing(named.algo, ranks);
  lenet::Options options = named;
  if (options.device == "cuda") {
    auto devices = rondo::cuda::join(std::move(ranks), {.device = rondo::cuda::kSpreadOverDevices});
    train_on(options, devices.host(), &devices);
    return;
  }
  if (!options.overlap) options.overlap = lenet::overlap_pays(ranks, options.threads);
  train_on(options, ranks, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  lenet::Options options;
  if (const auto status = lenet::read_command_line(argc, argv, options)) return *status;
  // Rondo's own threads call MPI where gradients are summed during backprop.
  const bool own_threads = options.device == "cuda" || options.overlap.value_or(true);
  return rondo::launch::launch({"rondo-lenet", options.ranks, options.processes, own_threads, {}},
                               &argc, &argv, [&](rondo::Communicator comm) {
                                 lenet::use_compute_threads(options.threads);
                                 train(options, std::move(comm));
                                 return 0;
                               });
}
