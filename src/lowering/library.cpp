// Ops that the library is the intended implementation of: matrix products, convolutions, attention.
#include "lowering/lowering_context.h"

namespace litz {
namespace {

constexpr LoweringRow kRows[] = {
    {"aten::mm", lower_to_library},
    {"aten::addmm", lower_to_library},
    {"aten::bmm", lower_to_library},
    {"aten::baddbmm", lower_to_library},
    {"aten::addbmm", lower_to_library},
    {"aten::addmv", lower_to_library},
    {"aten::addr", lower_to_library},
    {"aten::mv", lower_to_library},
    {"aten::dot", lower_to_library},
    {"aten::vdot", lower_to_library},
    {"aten::matmul", lower_to_library},
    {"aten::linear", lower_to_library},
    {"aten::einsum", lower_to_library},
    {"aten::_int_mm", lower_to_library},
    {"aten::convolution", lower_to_library},
    {"aten::convolution_backward", lower_to_library},
    {"aten::convolution_overrideable", lower_to_library},
    {"aten::convolution_backward_overrideable", lower_to_library},
    {"aten::_convolution", lower_to_library},
    {"aten::conv1d", lower_to_library},
    {"aten::conv2d", lower_to_library},
    {"aten::conv3d", lower_to_library},
    {"mkldnn::_convolution_pointwise", lower_to_library},
    {"mkldnn::_convolution_transpose_pointwise", lower_to_library},
    {"aten::scaled_dot_product_attention", lower_to_library},
    {"aten::_scaled_dot_product_attention_math", lower_to_library},
    {"aten::_scaled_dot_product_flash_attention", lower_to_library},
    {"aten::_scaled_dot_product_flash_attention_backward", lower_to_library},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", lower_to_library},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", lower_to_library},
    {"aten::_scaled_dot_product_efficient_attention", lower_to_library},
    {"aten::_scaled_dot_product_efficient_attention_backward", lower_to_library},
    {"aten::_scaled_dot_product_cudnn_attention", lower_to_library},
    {"aten::_scaled_dot_product_cudnn_attention_backward", lower_to_library},
};

}  // namespace

std::span<const LoweringRow> library_lowerings() { return kRows; }

}  // namespace litz
