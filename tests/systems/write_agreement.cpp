// Writes what a model computes, for agree_with_torch.py: write_agreement MODEL FOLDER
//
// description.json names the files' contents: parameters.bin (at the start), inputs.bin,
// labels.bin, gradients.bin (of the first step) and final.bin (parameters after all steps); 32-bit
// floats, parameters in their order; labels as bytes.
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "examples/systems/tasks.hpp"

namespace {

template <class T>
void write(const std::string& file, std::span<const T> values) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace

int main(int /*argc*/, char** argv) {
  constexpr std::size_t kBatch = 4;
  constexpr int kSteps = 10;
  constexpr float kRate = 0.001F;
  const lenet::Task& task = lenet::systems::task_named(argv[1]);
  const std::string folder = std::string(argv[2]) + "/";
  lenet::ParameterBlock parameters(task.shapes);
  lenet::ParameterBlock gradients(task.shapes);
  lenet::initialise(parameters, 7);
  std::mt19937 random(3);
  // Away from the start of a training: there all gradients of the first layers are nearly zero.
  std::normal_distribution<float> more(0.0F, 0.04F);
  for (float& value : parameters.all()) value += more(random);
  std::uniform_real_distribution<float> number(0.0F, 1.0F);
  std::vector<float> inputs(kBatch * task.input_elems);
  for (float& value : inputs) value = number(random);
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < kBatch; ++i)
    labels.push_back(static_cast<std::uint8_t>(i * 3 % task.classes));

  write<float>(folder + "parameters.bin", parameters.all());
  write<float>(folder + "inputs.bin", inputs);
  write<std::uint8_t>(folder + "labels.bin", labels);
  const auto model = task.make_model(parameters, gradients, {});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const lenet::BatchResult result =
        model->forward_backward(inputs, labels, [] {}, [](std::size_t) {});
    losses.push_back(result.loss);
    if (step == 0) write<float>(folder + "gradients.bin", gradients.all());
    lenet::descend(parameters, gradients, kRate / kBatch);
  }
  write<float>(folder + "final.bin", parameters.all());
  nlohmann::json description = {{"batch", kBatch}, {"rate", kRate}, {"losses", losses}};
  // By the moving averages of batch normalisation, where the model has any.
  description["evaluation_loss"] = model->forward(inputs, labels).loss;
  for (std::size_t i = 0; i < task.shapes->size(); ++i) {
    const lenet::ParameterShape& shape = (*task.shapes)[i];
    description["parameters"].push_back({{"name", shape.name}, {"dims", shape.dims}});
  }
  std::ofstream(folder + "description.json") << description.dump(1) << '\n';
}
