#include "tools/pattern_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "graph/number_text.h"
#include "runtime/native_host.h"
#include "support/dtype.h"
#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

constexpr int64_t kSymbolValue = 6;
constexpr int32_t kThreads = 2;

int64_t value_of(int64_t extent, const std::string& what) {
  if (extent >= 0) return extent;
  if (extent == LITZ_ANY_EXTENT) {
    throw UserError(what + " is neither a number nor a symbol, and --run cannot make it up");
  }
  return kSymbolValue;
}

// Calls `visit` with the number and the offset of each element, in row-major order.
void for_each_element(const LitzTensor& tensor,
                      const std::function<void(int64_t, int64_t)>& visit) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.sizes[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t offset = 0;
    for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
      offset += rest % tensor.sizes[d] * tensor.strides[d];
      rest /= tensor.sizes[d];
    }
    visit(i, offset);
  }
}

std::string pattern_element(DType dtype, int64_t i, int64_t input) {
  if (dtype == DType::kBool) return (i + input) % 2 == 1 ? "true" : "false";
  if (is_integral(dtype)) return std::to_string((i + input) % 4);
  return print_double(static_cast<double>((5 * i + 3 * input) % 11 - 5) / 4);
}

struct Input {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<std::byte> memory;
  LitzTensor tensor{};
};

// Strides that are expressions are those of a contiguous tensor.
void make_layout(const LitzInputSpec& spec, Input& input) {
  const std::string name = "of input " + std::string(spec.name);
  for (int32_t d = 0; d < spec.ndim; ++d) {
    input.sizes.push_back(value_of(spec.sizes[d], "size " + std::to_string(d) + " " + name));
  }
  input.strides.resize(input.sizes.size());
  int64_t contiguous = 1;
  for (size_t d = input.sizes.size(); d-- > 0;) {
    const int64_t stride = spec.strides[d];
    input.strides[d] = stride == LITZ_ANY_EXTENT ? contiguous : value_of(stride, "stride " + name);
    contiguous *= std::max<int64_t>(input.sizes[d], 1);
  }
}

void fill(const LitzInputSpec& spec, int64_t number, Input& input) {
  make_layout(spec, input);
  input.tensor = {nullptr,   input.sizes.data(), input.strides.data(),
                  spec.ndim, spec.dtype,         nullptr};
  const auto dtype = static_cast<DType>(spec.dtype);
  const auto bytes = static_cast<size_t>(size_of(dtype));
  size_t last = 0;
  for_each_element(input.tensor,
                   [&](int64_t, int64_t at) { last = std::max(last, static_cast<size_t>(at)); });
  input.memory.resize((last + 1) * bytes);
  for_each_element(input.tensor, [&](int64_t i, int64_t at) {
    std::vector<std::byte> element;
    if (!parse_element(dtype, pattern_element(dtype, i, number), element)) {
      throw UserError("--run cannot make up elements of " + std::string(torch_name(dtype)));
    }
    std::copy(element.begin(), element.end(),
              input.memory.begin() + at * static_cast<int64_t>(bytes));
  });
  input.tensor.data = input.memory.data();
}

std::string list_text(const int64_t* items, int32_t count) {
  std::string text;
  for (int32_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(items[i]);
  return "[" + text + "]";
}

std::string tensor_text(const LitzTensor& tensor) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  const auto bytes = static_cast<size_t>(size_of(dtype));
  std::vector<std::byte> elements;
  bool contiguous = true;
  for_each_element(tensor, [&](int64_t i, int64_t offset) {
    contiguous = contiguous && offset == i;
    const auto* element =
        static_cast<const std::byte*>(tensor.data) + offset * static_cast<int64_t>(bytes);
    elements.insert(elements.end(), element, element + bytes);
  });
  std::string text = std::string(to_string(dtype)) + list_text(tensor.sizes, tensor.ndim);
  if (!contiguous) text += " strides " + list_text(tensor.strides, tensor.ndim);
  return text + " = [" + print_elements(dtype, elements).value_or(print_hex(elements)) + "]";
}

std::string output_text(const LitzValue& value) {
  switch (value.kind) {
    case LITZ_TENSOR:
      return tensor_text(*value.u.tensor);
    case LITZ_INT:
      return "int " + std::to_string(value.u.i);
    case LITZ_SAME_INPUT:
      return "input " + std::to_string(value.u.i);
    case LITZ_SAME_OUTPUT:
      return "output " + std::to_string(value.u.i);
    default:
      return "none";
  }
}

}  // namespace

std::string run_on_pattern(const Executable& graph) {
  const LitzArtifact& table = graph.table();
  Frame frame(table);
  std::vector<Input> inputs(frame.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const LitzInputSpec& spec = table.inputs[k];
    frame.inputs[k] = {.kind = spec.kind, .count = 0, .u = {.tensor = &inputs[k].tensor}};
    if (spec.kind == LITZ_TENSOR) {
      fill(spec, static_cast<int64_t>(k), inputs[k]);
    } else {
      frame.inputs[k].u.i = value_of(spec.sizes[0], "input " + std::string(spec.name));
    }
  }
  if (const std::string fault = check_inputs(table, frame); !fault.empty()) throw UserError(fault);

  const auto blocks = std::make_shared<BlockPool>();
  ThreadPool threads(kThreads);
  NativeRun run(blocks, threads);
  const int status = graph.run(run.host(), frame, blocks.get());
  if (status != LITZ_OK) {
    return "status " + std::to_string(status) + ": " + run.message() + "\n";
  }
  std::string text;
  for (size_t i = 0; i < frame.outputs.size(); ++i) {
    text += "output " + std::to_string(i) + ": " + output_text(frame.outputs[i]) + "\n";
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (table.inputs[k].is_mutated == 0) continue;
    text += "input " + std::to_string(k) + " afterwards: " + tensor_text(inputs[k].tensor) + "\n";
  }
  for (size_t i = 0; i < frame.outputs.size(); ++i) {
    if (frame.outputs[i].kind == LITZ_TENSOR) release_native_tensor(frame.output_tensors[i]);
  }
  return text;
}

}  // namespace litz
