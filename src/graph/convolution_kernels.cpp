#include "graph/convolution_kernels.h"

#include <vector>

#include "graph/op_traits.h"

namespace litz {
namespace {

std::string numbers(const std::vector<Index>& values) {
  std::string text;
  for (Index value : values) text += (text.empty() ? "" : ", ") + to_string(value);
  return "[" + text + "]";
}

std::string numbers_of(const Argument& list) {
  std::string text;
  for (const Argument& entry : list.get<ArgumentList>()) {
    text += text.empty() ? "" : ", ";
    text += entry.holds<int64_t>() ? std::to_string(entry.get<int64_t>()) : "?";
  }
  return "[" + text + "]";
}

}  // namespace

std::string convolution_key(const Graph& graph, const Node& convolution) {
  const TensorMeta& input = graph.tensor(argument(convolution, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(convolution, "weight").get<Value>());
  std::string key = convolution.schema->name + " " + std::string(to_string(input.dtype)) +
                    numbers(input.sizes) + numbers(input.strides) + " with " +
                    numbers(weight.sizes);
  for (const char* name : {"stride", "padding", "dilation"})
    key += " " + std::string(name) + " " + numbers_of(argument(convolution, name));
  return key + (argument(convolution, "bias").is_none() ? "" : " and a bias");
}

}  // namespace litz
