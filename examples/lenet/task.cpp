#include "task.hpp"

#include "examples/layers/idx.hpp"
#include "lenet_shapes.hpp"
#include "models.hpp"

namespace lenet {

const Task& lenet_task() {
  static const Task kTask{.name = "lenet",
                          .input_elems = kImagePixels,
                          .classes = kClasses,
                          .shapes = lenet_shapes(),
                          .read = read_images,
                          .folder = kFashionMnist,
                          .bucket_kib = 16,
                          .make_model = lenet_on_cpu(),
                          .build_on_gpu = lenet_on_gpu()};
  return kTask;
}

}  // namespace lenet
