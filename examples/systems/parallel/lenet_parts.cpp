#include "lenet_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "examples/lenet/lenet_shapes.hpp"

namespace lenet::systems {
namespace {

// Cuts dimension `dim`, which counts groups of `group` elements, as part_of() says.
void cut(ParameterShape& shape, std::size_t dim, std::size_t group, int part, int parts) {
  shape.whole = shape.dims;
  const auto all = static_cast<std::size_t>(shape.dims.at(dim)) / group;
  const PartRange range = part_of(all, part, parts);
  shape.first.at(dim) = static_cast<std::int64_t>(range.first * group);
  shape.dims.at(dim) = static_cast<std::int64_t>(range.count * group);
}

void keep_nothing(ParameterShape& shape) {
  shape.whole = shape.dims;
  shape.dims[0] = 0;
}

void cut_columns(std::vector<ParameterShape>& shapes, int part, int parts) {
  for (const Parameter weights : {kW3, kW4}) cut(shapes[weights], 1, 1, part, parts);
  for (const Parameter bias : {kB3, kB4}) cut(shapes[bias], 0, 1, part, parts);
}

void cut_rows(std::vector<ParameterShape>& shapes, int part, int parts) {
  constexpr std::size_t kPixels = 16;  // of each channel: rows of W3 that belong together
  cut(shapes[kW3], 0, kPixels, part, parts);
  cut(shapes[kW4], 0, 1, part, parts);
  if (part == 0) return;
  for (const Parameter bias : {kB3, kB4}) keep_nothing(shapes[bias]);
}

void keep_stage(std::vector<ParameterShape>& shapes, int stage) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if ((i < kW3) != (stage == 0)) keep_nothing(shapes[i]);
  }
}

// Fills `whole` where the part is in it.
void place(ParameterBlock& whole, ParameterBlock& part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::vector<bool> mine = elements_of_part((*part.shapes())[i]);
    const float* next = part[i].data();
    for (std::size_t element = 0; element < mine.size(); ++element) {
      if (mine[element]) whole[i][element] = *next++;
    }
  }
}

}  // namespace

Split split_named(const std::string& name) {
  if (name == "columns") return Split::columns;
  if (name == "rows") return Split::rows;
  if (name == "layers") return Split::layers;
  throw std::runtime_error("a model can be split by columns, rows or layers, not by '" + name +
                           "'");
}

std::shared_ptr<const ParameterShapes> lenet_part_shapes(Split split, int part, int parts) {
  constexpr int kMost = 10;  // W4 has 10 columns
  if (parts < 1 || parts > kMost || (split == Split::layers && parts != 2)) {
    throw std::runtime_error(fmt::format(
        "LeNet cannot be split into {} parts: by layers it has 2, by columns and rows 1 to {}",
        parts, kMost));
  }
  std::vector<ParameterShape> shapes;
  for (std::size_t i = 0; i < lenet_shapes()->size(); ++i) shapes.push_back((*lenet_shapes())[i]);
  switch (split) {
    case Split::columns:
      cut_columns(shapes, part, parts);
      break;
    case Split::rows:
      cut_rows(shapes, part, parts);
      break;
    case Split::layers:
      keep_stage(shapes, part);
      break;
  }
  return std::make_shared<const ParameterShapes>(std::move(shapes));
}

ParameterBlock joined(ParameterBlock& mine, Parts& parts, Split split) {
  ParameterBlock whole(lenet_shapes());
  if (parts.part() != 0) {
    parts.send(std::span<const float>(mine.all()), 0);
    return whole;
  }
  place(whole, mine);
  for (int part = 1; part < parts.parts(); ++part) {
    ParameterBlock other(lenet_part_shapes(split, part, parts.parts()));
    parts.recv(other.all(), part);
    place(whole, other);
  }
  return whole;
}

}  // namespace lenet::systems
