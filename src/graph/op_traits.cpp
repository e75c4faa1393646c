#include "graph/op_traits.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "support/error.h"

namespace litz {
namespace {

// Sorted.
constexpr std::string_view kUninitialized[] = {
    "aten::empty",         "aten::empty_like", "aten::empty_permuted",
    "aten::empty_strided", "aten::new_empty",  "aten::new_empty_strided",
};

// Views, or ops that return their argument in some mode, without an alias annotation. Sorted.
constexpr std::string_view kHiddenAliases[] = {
    "aten::_unsafe_view", "aten::broadcast_tensors", "aten::meshgrid",
    "aten::unsafe_chunk", "aten::unsafe_split",      "aten::unsafe_split_with_sizes",
};

// Update running statistics that the schema does not mark as mutated. Sorted.
constexpr std::string_view kHiddenWrites[] = {
    "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm",  "aten::instance_norm",
    "aten::miopen_batch_norm",      "aten::native_batch_norm",
};

// Ops of the library that are not ATen's, and do what their schemas say. Sorted.
constexpr std::string_view kPlainOps[] = {
    "litz::packed_linear",
    "mkldnn::_convolution_pointwise",
    "mkldnn::_convolution_transpose_pointwise",
    "mkldnn::_reorder_convolution_transpose_weight",
    "mkldnn::_reorder_convolution_weight",
};

// Sorted.
constexpr std::string_view kCannotFail[] = {
    "aten::_to_copy",
    "aten::_unsafe_view",
    "aten::abs",
    "aten::add",
    "aten::alias",
    "aten::bitwise_and",
    "aten::bitwise_not",
    "aten::bitwise_or",
    "aten::bitwise_xor",
    "aten::cat",
    "aten::ceil",
    "aten::clone",
    "aten::cos",
    "aten::detach",
    "aten::eq",
    "aten::erf",
    "aten::exp",
    "aten::expand",
    "aten::expm1",
    "aten::floor",
    "aten::full",
    "aten::full_like",
    "aten::ge",
    "aten::gelu",
    "aten::gt",
    "aten::isinf",
    "aten::isnan",
    "aten::le",
    "aten::log",
    "aten::log1p",
    "aten::logical_and",
    "aten::logical_not",
    "aten::logical_or",
    "aten::logical_xor",
    "aten::lt",
    "aten::maximum",
    "aten::minimum",
    "aten::mul",
    "aten::ne",
    "aten::neg",
    "aten::ones",
    "aten::ones_like",
    "aten::permute",
    "aten::reciprocal",
    "aten::relu",
    "aten::round",
    "aten::rsqrt",
    "aten::scalar_tensor",
    "aten::select",
    "aten::sigmoid",
    "aten::sign",
    "aten::silu",
    "aten::sin",
    "aten::slice",
    "aten::split",
    "aten::split_with_sizes",
    "aten::sqrt",
    "aten::squeeze",
    "aten::stack",
    "aten::sub",
    "aten::sum",
    "aten::sym_size",
    "aten::t",
    "aten::tanh",
    "aten::transpose",
    "aten::trunc",
    "aten::unbind",
    "aten::unsqueeze",
    "aten::view",
    "aten::where",
    "aten::zeros",
    "aten::zeros_like",
    "prims::convert_element_type",
};

// Tracing checks their sizes. Eager also wants one dtype, and has no kernels for bools. Sorted.
constexpr std::string_view kProducts[] = {
    "aten::addmm", "aten::baddbmm", "aten::bmm", "aten::mm", "aten::mv",
};

// Beside the pointwise ops. Sorted.
constexpr std::string_view kKeepsLayout[] = {
    "aten::__and__",
    "aten::__or__",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool3d_backward",
    "aten::_batch_norm_no_update",
    "aten::_batch_norm_with_update_functional",
    "aten::_log_softmax",
    "aten::_log_softmax_backward_data",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_functional",
    "aten::_native_batch_norm_legit_no_training",
    "aten::_prelu_kernel",
    "aten::_prelu_kernel_backward",
    "aten::_softmax",
    "aten::_softmax_backward_data",
    "aten::_to_copy",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_nearest_exact2d_backward",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::adaptive_max_pool2d",
    "aten::adaptive_max_pool2d_backward",
    "aten::adaptive_max_pool3d",
    "aten::adaptive_max_pool3d_backward",
    "aten::avg_pool2d",
    "aten::avg_pool2d_backward",
    "aten::avg_pool3d",
    "aten::avg_pool3d_backward",
    "aten::cat",
    "aten::channel_shuffle",
    "aten::concat",
    "aten::constant_pad_nd",
    "aten::copy",
    "aten::elu_backward",
    "aten::fill",
    "aten::flip",
    "aten::floor_divide",
    "aten::glu",
    "aten::glu_backward",
    "aten::grid_sampler_2d",
    "aten::hardshrink_backward",
    "aten::hardsigmoid_backward",
    "aten::hardswish",
    "aten::hardswish_backward",
    "aten::hardtanh_backward",
    "aten::leaky_relu_backward",
    "aten::log_sigmoid",
    "aten::log_sigmoid_backward",
    "aten::log_sigmoid_forward",
    "aten::masked_fill",
    "aten::max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices",
    "aten::max_pool3d_with_indices_backward",
    "aten::mish_backward",
    "aten::native_batch_norm_backward",
    "aten::native_channel_shuffle",
    "aten::native_group_norm",
    "aten::native_group_norm_backward",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::reflection_pad2d",
    "aten::reflection_pad2d_backward",
    "aten::reflection_pad3d",
    "aten::reflection_pad3d_backward",
    "aten::replication_pad2d",
    "aten::replication_pad2d_backward",
    "aten::replication_pad3d",
    "aten::replication_pad3d_backward",
    "aten::roll",
    "aten::rsub",
    "aten::softplus_backward",
    "aten::softshrink_backward",
    "aten::special_exp2",
    "aten::upsample_bilinear2d",
    "aten::upsample_bilinear2d_backward",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest2d_backward",
    "aten::where",
    "prims::convert_element_type",
};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::binary_search(std::begin(names), std::end(names), name);
}

// What the schema and its tags leave out is in the lists above.
bool is_known(const OpSchema& schema) {
  return schema.is_builtin || contains(kPlainOps, schema.name);
}

}  // namespace

bool is_pure(const OpSchema& schema) {
  if (!is_known(schema) || schema.has_tag(kRandom) || schema.has_tag(kMayAlias)) return false;
  if (schema.returns.empty() || contains(kUninitialized, schema.name)) return false;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].base == SchemaType::kGenerator || writes_argument(schema, i))
      return false;
  }
  return true;
}

bool cannot_fail(const OpSchema& schema) {
  return contains(kCannotFail, schema.name) && is_pure(schema);
}

bool cannot_fail(const Graph& graph, const Node& call) {
  if (cannot_fail(*call.schema)) return true;
  if (!contains(kProducts, call.schema->name) || !is_pure(*call.schema)) return false;
  bool floats = true;
  const DType dtype = call.outputs[0].tensor.dtype;
  for (const Argument& argument : call.arguments) {
    for_each_value(argument, [&](Value value) {
      const ValueMeta& meta = graph.meta(value);
      floats = floats && meta.is_tensor() && meta.tensor.dtype == dtype;
    });
  }
  return floats && is_floating(dtype);
}

bool keeps_layout(const OpSchema& schema) {
  if (!is_pure(schema) || has_hidden_aliases(schema)) return false;
  for (const SchemaArgument& result : schema.returns) {
    if (result.base != SchemaType::kTensor || !result.alias_set.empty()) return false;
  }
  return schema.has_tag(kPointwise) || contains(kKeepsLayout, schema.name);
}

bool writes_argument(const OpSchema& schema, size_t argument) {
  if (schema.arguments[argument].is_mutated) return true;
  return schema.arguments[argument].base == SchemaType::kTensor &&
         (schema.has_tag(kMayAlias) || contains(kHiddenWrites, schema.name));
}

bool has_hidden_aliases(const OpSchema& schema) {
  return !is_known(schema) || schema.has_tag(kMayAlias) || contains(kHiddenAliases, schema.name);
}

size_t return_of_output(const OpSchema& schema, size_t num_outputs, size_t output) {
  const auto& returns = schema.returns;
  const size_t lists = static_cast<size_t>(std::count_if(
      returns.begin(), returns.end(), [](const SchemaArgument& r) { return r.is_list; }));
  LITZ_CHECK(output < num_outputs && num_outputs + lists >= returns.size(),
             schema.full_name() + " has no result " + std::to_string(output));
  const size_t left_over = num_outputs - (returns.size() - lists);
  size_t begin = 0;
  size_t lists_before = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    size_t length = 1;
    if (returns[i].is_list) {
      length = (lists_before + 1) * left_over / lists - lists_before * left_over / lists;
      ++lists_before;
    }
    if (output < begin + length) return i;
    begin += length;
  }
  throw_internal("output < begin", __FILE__, __LINE__,
                 schema.full_name() + " has fewer results than " + std::to_string(num_outputs));
}

bool has_mutations(const Graph& graph) {
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.kind == NodeKind::kCall && node.schema->mutates()) return true;
  }
  return false;
}

}  // namespace litz
