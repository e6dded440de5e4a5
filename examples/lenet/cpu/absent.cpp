#include <stdexcept>

#include "models.hpp"
#include "parallel/lenet_parts.hpp"

namespace lenet {

Task lenet_part(Split /*split*/, const std::shared_ptr<Parts>& /*parts*/,
                std::size_t /*micro_batches*/) {
  throw std::runtime_error("this rondo-lenet was built without oneDNN: LeNet cannot be split");
}

MakeModel model_on_cpu(const std::string& /*name*/) { return {}; }

}  // namespace lenet
