#include "passes/layout_rules.h"

#include <algorithm>

#include "passes/channels_last.h"

namespace litz {
namespace {

using enum ConvolutionKind;

// By device, use, dimensions of the tensors, bytes of an element and kind: nanoseconds saved per
// million multiply-adds. A row that is missing is no reason for either layout.
enum class Use : uint8_t { kInference, kTraining };
using enum Use;
struct ConvolutionRule {
  std::string_view device;
  Use use;
  size_t rank;
  int64_t bytes;
  ConvolutionKind kind;
  double saved;
};
constexpr ConvolutionRule kConvolutionRules[] = {
    // An H200: ResNet-50 of 32 images, 131e9 multiply-adds, takes 3.1 ms less in float32 (TF32), a
    // step of ResNet-18, 174e9, 1.1 ms less.
    {"cuda", kInference, 4, 4, kDense, 24},
    {"cuda", kInference, 4, 2, kDense, 24},
    {"cuda", kTraining, 4, 4, kDense, 6},
    {"cuda", kTraining, 4, 2, kDense, 6},
    // Not measured, so that graphs with much of them stay as they are.
    {"cuda", kInference, 4, 4, kDepthwise, -1000},
    {"cuda", kInference, 4, 2, kDepthwise, -1000},
    {"cuda", kInference, 4, 4, kGrouped, -240},
    {"cuda", kInference, 4, 2, kGrouped, -240},
    {"cuda", kTraining, 4, 4, kDepthwise, -1000},
    {"cuda", kTraining, 4, 2, kDepthwise, -1000},
    {"cuda", kTraining, 4, 4, kGrouped, -240},
    {"cuda", kTraining, 4, 2, kGrouped, -240},
    // One thread of an AVX2 machine, oneDNN: copies to and from its blocked layouts are cheaper.
    {"cpu", kInference, 4, 4, kDense, 3000},
    {"cpu", kInference, 4, 4, kFewChannels, -3000},
    {"cpu", kInference, 4, 4, kDepthwise, 45000},
    {"cpu", kInference, 4, 4, kGrouped, 5000},
    // Three to four times as fast, also where there are no instructions for them.
    {"cpu", kInference, 4, 2, kDense, 100000},
};

// By device: nanoseconds for each copy, and per million bytes, which are read and written.
struct CopyRule {
  std::string_view device;
  double each;
  double per_megabyte;
};
constexpr CopyRule kCopyRules[] = {
    {"cuda", 2000, 700},
    {"cpu", 2000, 300000},
};

// A symbolic size counts as this much, or the least it can be.
constexpr int64_t kUsualSize = 16;
constexpr int64_t kFewChannelsBelow = 8;

constexpr std::string_view kConvolutions[] = {"aten::_convolution", "aten::conv2d", "aten::conv3d",
                                              "aten::convolution"};

std::string_view kind_of_device(std::string_view device) {
  return device.substr(0, device.find(':'));
}

double usual_size(Index size) {
  const int64_t value =
      evaluate(size, [](Index symbol) { return std::max<int64_t>(kUsualSize, symbol.range().lo); });
  return static_cast<double>(value);
}

double usual_elements(const TensorMeta& tensor) {
  double elements = 1;
  for (Index size : tensor.sizes) elements *= usual_size(size);
  return elements;
}

bool has_kernels(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

const Argument* find_argument(const Node& call, std::string_view name) {
  const int position = call.schema->find(name);
  return position < 0 ? nullptr : &call.arguments[static_cast<size_t>(position)];
}

bool is_true(const Argument* argument) {
  return argument != nullptr && *argument == Argument(true);
}

ConvolutionKind kind_of(const TensorMeta& weight, bool grouped, bool transposed) {
  // Of a transposed one the weight is turned round: input channels come first.
  const Index channels = weight.sizes[transposed && !grouped ? 0 : 1];
  if (grouped) return channels.is_constant(1) ? kDepthwise : kGrouped;
  return prove_less(channels, channels.context().constant(kFewChannelsBelow)) ? kFewChannels
                                                                              : kDense;
}

// Each element of the output is a sum of as many products as the weight has elements for it; of a
// transposed one, each element of the input goes into as many.
double multiply_adds(const TensorMeta& input, const TensorMeta& output, const TensorMeta& weight,
                     bool transposed) {
  return usual_elements(transposed ? input : output) * usual_elements(weight) /
         std::max(1.0, usual_size(weight.sizes[0]));
}

}  // namespace

std::optional<Convolution> find_convolution(const Graph& graph, NodeId id) {
  const Node& call = graph.node(id);
  if (call.kind != NodeKind::kCall) return std::nullopt;
  const bool backward = call.schema->full_name() == "aten::convolution_backward";
  if (!backward && std::find(std::begin(kConvolutions), std::end(kConvolutions),
                             call.schema->full_name()) == std::end(kConvolutions))
    return std::nullopt;
  Convolution found;
  found.input = find_argument(call, "input")->get<Value>();
  found.weight = find_argument(call, "weight")->get<Value>();
  if (backward) found.gradient = find_argument(call, "grad_output")->get<Value>();

  const TensorMeta& input = graph.tensor(found.input);
  const TensorMeta& weight = graph.tensor(found.weight);
  const TensorMeta& output = backward ? graph.tensor(found.gradient) : call.outputs[0].tensor;
  for (const TensorMeta* tensor : {&input, &weight, &output}) {
    if (tensor->sizes.size() != weight.sizes.size() || tensor->device != input.device ||
        tensor->layout != TensorLayout::kStrided || !has_kernels(tensor->dtype))
      return std::nullopt;
  }
  if (!has_channels_last(weight.sizes.size())) return std::nullopt;

  const bool transposed = is_true(find_argument(call, "transposed"));
  found.kind = kind_of(weight, *find_argument(call, "groups") != Argument(int64_t{1}), transposed);
  found.multiply_adds = multiply_adds(input, output, weight, transposed);
  if (backward) {
    const double gradients =
        (call.outputs[0].is_tensor() ? 1 : 0) + (call.outputs[1].is_tensor() ? 1 : 0);
    found.multiply_adds *= gradients;
  }
  return found;
}

double seconds_saved(const Graph& graph, const Convolution& convolution) {
  const TensorMeta& weight = graph.tensor(convolution.weight);
  const Use use =
      convolution.gradient.valid() || !graph.free_layouts().empty() ? kTraining : kInference;
  for (const ConvolutionRule& rule : kConvolutionRules) {
    if (rule.use == use && rule.device == kind_of_device(weight.device) &&
        rule.rank == weight.sizes.size() && rule.bytes == size_of(weight.dtype) &&
        rule.kind == convolution.kind)
      return convolution.multiply_adds * rule.saved * 1e-15;
  }
  return 0;
}

double seconds_to_copy(const TensorMeta& tensor) {
  for (const CopyRule& rule : kCopyRules) {
    if (rule.device != kind_of_device(tensor.device)) continue;
    const double bytes = usual_elements(tensor) * static_cast<double>(size_of(tensor.dtype));
    return (rule.each + bytes * 1e-6 * rule.per_megabyte) * 1e-9;
  }
  return 0;
}

}  // namespace litz
