#include "runtime/torch_ops.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/torch_attention.h"
#include "runtime/torch_call.h"

namespace litz {
namespace {

using Ints = std::vector<int64_t>;

int64_t length(const Ints& list) { return static_cast<int64_t>(list.size()); }

bool is_cuda(const TorchApi& api, const TorchTemporaries& temporaries) {
  return temporaries.device().type == api.cuda;
}

bool is_tensor(const LitzValue& value, int32_t ndim) {
  return value.kind == LITZ_TENSOR && value.u.tensor->ndim == ndim;
}

bool is_floating_tensor(const LitzValue& value) {
  return value.kind == LITZ_TENSOR && is_floating(static_cast<DType>(value.u.tensor->dtype));
}

// Runs a function that writes a row-major matrix product, or a batch of them, into memory that the
// caller named, or into a new tensor.
template <class Compute>
CallOutcome multiply(const TorchApi& api, const LitzTensor& left, const LitzTensor& right,
                     LitzValue* result, TorchTemporaries& temporaries, Compute compute) {
  if (result->kind == LITZ_TENSOR && result->u.result->data != nullptr) {
    const TorchTensor out = temporaries.handle(*result->u.result);
    return out != nullptr && compute(out) == 0 ? CallOutcome::kDone : CallOutcome::kFailed;
  }
  const int32_t ndim = left.ndim;
  std::array<int64_t, 3> sizes{left.sizes[0], left.sizes[ndim - 2], right.sizes[ndim - 1]};
  std::array<int64_t, 3> strides{sizes[1] * sizes[2], sizes[2], 1};
  const int32_t skip = 3 - ndim;
  TorchTensor out = nullptr;
  if (api.empty_strided(ndim, sizes.data() + skip, strides.data() + skip,
                        api.to_torch(static_cast<DType>(left.dtype)), temporaries.device().type,
                        temporaries.device().index, &out) != 0) {
    return CallOutcome::kFailed;
  }
  if (compute(out) != 0) {
    api.delete_tensor(out);
    return CallOutcome::kFailed;
  }
  return deliver(api, temporaries.device(), {&out, 1}, result);
}

template <int32_t ndim>
CallOutcome call_product(const TorchApi& api, const LitzValue* args, LitzValue* results,
                         TorchTemporaries& temporaries) {
  if (!is_tensor(args[0], ndim) || !is_tensor(args[1], ndim)) return CallOutcome::kNotHandled;
  const TorchTensor left = temporaries.handle(*args[0].u.tensor);
  const TorchTensor right = temporaries.handle(*args[1].u.tensor);
  if (left == nullptr || right == nullptr) return CallOutcome::kFailed;
  const auto function = is_cuda(api, temporaries) ? (ndim == 2 ? api.cuda_mm_out : api.cuda_bmm_out)
                                                  : (ndim == 2 ? api.cpu_mm_out : api.cpu_bmm_out);
  return multiply(api, *args[0].u.tensor, *args[1].u.tensor, results, temporaries,
                  [&](TorchTensor out) { return function(out, left, right); });
}

// beta * self + alpha * (left @ right). Integer tensors refuse the floating-point factors that the
// C function takes.
template <int32_t ndim>
CallOutcome call_sum_of_product(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                TorchTemporaries& temporaries) {
  if (!is_floating_tensor(args[0]) || !is_tensor(args[1], ndim) || !is_tensor(args[2], ndim)) {
    return CallOutcome::kNotHandled;
  }
  CallArguments a(args, temporaries);
  const TorchTensor self = a.tensor(0);
  const TorchTensor left = a.tensor(1);
  const TorchTensor right = a.tensor(2);
  const double beta = a.number(3);
  const double alpha = a.number(4);
  if (!a.fits()) return CallOutcome::kNotHandled;
  const auto function = is_cuda(api, temporaries)
                            ? (ndim == 2 ? api.cuda_addmm_out : api.cuda_baddbmm_out)
                            : (ndim == 2 ? api.cpu_addmm_out : api.cpu_baddbmm_out);
  return multiply(api, *args[1].u.tensor, *args[2].u.tensor, results, temporaries,
                  [&](TorchTensor out) { return function(out, self, left, right, beta, alpha); });
}

CallOutcome call_convolution(const TorchApi& api, const LitzValue* args, LitzValue* results,
                             TorchTemporaries& temporaries) {
  if (args[0].kind != LITZ_TENSOR || args[1].kind != LITZ_TENSOR) return CallOutcome::kNotHandled;
  CallArguments a(args, temporaries);
  const TorchTensor input = a.tensor(0);
  const TorchTensor weight = a.tensor(1);
  TorchTensor* bias = a.optional_tensor(2);
  const Ints& stride = a.integers(3);
  const Ints& padding = a.integers(4);
  const Ints& dilation = a.integers(5);
  const int32_t transposed = a.flag(6);
  const Ints& output_padding = a.integers(7);
  const int64_t groups = a.integer(8);
  if (!a.fits()) return CallOutcome::kNotHandled;
  TorchTensor out = nullptr;
  const auto function = is_cuda(api, temporaries) ? api.cuda_convolution : api.cpu_convolution;
  if (function(input, weight, bias, stride.data(), length(stride), padding.data(), length(padding),
               dilation.data(), length(dilation), transposed, output_padding.data(),
               length(output_padding), groups, &out) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), {&out, 1}, results);
}

CallOutcome call_convolution_backward(const TorchApi& api, const LitzValue* args,
                                      LitzValue* results, TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  const TorchTensor gradient = a.tensor(0);
  const TorchTensor input = a.tensor(1);
  const TorchTensor weight = a.tensor(2);
  const bool has_bias = args[3].kind != LITZ_NONE;
  const Ints bias_sizes = has_bias ? a.integers(3) : Ints();
  const Ints& stride = a.integers(4);
  const Ints& padding = a.integers(5);
  const Ints& dilation = a.integers(6);
  const int32_t transposed = a.flag(7);
  const Ints& output_padding = a.integers(8);
  const int64_t groups = a.integer(9);
  const std::vector<int32_t>& mask = a.flags(10);
  if (!a.fits()) return CallOutcome::kNotHandled;
  const int64_t* bias_data = bias_sizes.data();
  std::array<TorchTensor, 3> out{};
  const auto function =
      is_cuda(api, temporaries) ? api.cuda_convolution_backward : api.cpu_convolution_backward;
  if (function(gradient, input, weight, has_bias ? &bias_data : nullptr, length(bias_sizes),
               stride.data(), length(stride), padding.data(), length(padding), dilation.data(),
               length(dilation), transposed, output_padding.data(), length(output_padding), groups,
               mask.data(), static_cast<int64_t>(mask.size()), &out[0], &out[1], &out[2]) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

// randint.low, on the graph's own device.
CallOutcome call_integers(const TorchApi& api, const LitzValue* args, LitzValue* results,
                          TorchTemporaries& temporaries) {
  TorchDevice device = temporaries.device();
  const LitzValue& wanted = args[5];
  if (args[3].kind != LITZ_DTYPE || args[4].kind != LITZ_NONE || args[6].kind != LITZ_NONE ||
      (wanted.kind != LITZ_NONE && wanted.kind != LITZ_DEVICE))
    return CallOutcome::kNotHandled;
  if (wanted.kind == LITZ_DEVICE) {
    const std::optional<TorchDevice> named = api.device(wanted.u.s);
    if (!named || named->type != device.type || named->index != device.index)
      return CallOutcome::kNotHandled;
  }
  CallArguments a(args, temporaries);
  const int64_t low = a.integer(0);
  const int64_t high = a.integer(1);
  const Ints& sizes = a.integers(2);
  if (!a.fits()) return CallOutcome::kNotHandled;
  int32_t dtype = api.to_torch(static_cast<DType>(args[3].u.i));
  TorchTensor out = nullptr;
  const auto function = is_cuda(api, temporaries) ? api.cuda_randint_low : api.cpu_randint_low;
  if (function(low, high, sizes.data(), length(sizes), &dtype, nullptr, &device.type, device.index,
               nullptr, &out) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), {&out, 1}, results);
}

// With or without an output padding behind the padding. Of what oneDNN could do behind it nothing
// is asked for: its ReLU makes a NaN 0.
template <bool transposed>
CallOutcome call_packed_convolution(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                    TorchTemporaries& temporaries) {
  constexpr int kLists = transposed ? 4 : 3;
  constexpr int kRest = 3 + kLists;  // groups, attr, scalars, algorithm
  if (args[0].kind != LITZ_TENSOR || args[1].kind != LITZ_TENSOR ||
      args[kRest + 2].kind != LITZ_LIST || args[kRest + 2].count != 0)
    return CallOutcome::kNotHandled;
  CallArguments a(args, temporaries);
  const TorchTensor input = a.tensor(0);
  const TorchTensor weight = a.tensor(1);
  TorchTensor* bias = a.optional_tensor(2);
  std::array<Ints, kLists> lists;
  for (int i = 0; i < kLists; ++i) lists[static_cast<size_t>(i)] = a.integers(3 + i);
  const int64_t groups = a.integer(kRest);
  const char* operation = a.text(kRest + 1);
  const char* algorithm = a.text(kRest + 3);
  if (!a.fits()) return CallOutcome::kNotHandled;
  const auto data = [&](int i) { return lists[static_cast<size_t>(i)].data(); };
  const auto size = [&](int i) { return length(lists[static_cast<size_t>(i)]); };
  TorchTensor out = nullptr;
  TorchStatus status = 0;
  if constexpr (transposed) {
    status = api.cpu_packed_transposed(input, weight, bias, data(0), size(0), data(1), size(1),
                                       data(2), size(2), data(3), size(3), groups, operation,
                                       nullptr, 0, &algorithm, &out);
  } else {
    status =
        api.cpu_packed_convolution(input, weight, bias, data(0), size(0), data(1), size(1), data(2),
                                   size(2), groups, operation, nullptr, 0, &algorithm, &out);
  }
  if (status != 0) return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), {&out, 1}, results);
}

struct Entry {
  std::string_view name;
  bool on_cpu;
  bool on_cuda;
  DirectOp call;
};

}  // namespace

DirectOp find_direct_op(const TorchApi& api, int32_t device_type, std::string_view name,
                        std::string_view overload) {
  if (name == "aten::randint" && overload == "low") {
    const bool present = device_type == api.cpu    ? api.cpu_randint_low != nullptr
                         : device_type == api.cuda ? api.cuda_randint_low != nullptr
                                                   : false;
    return present ? call_integers : nullptr;
  }
  if (!overload.empty()) return nullptr;
  const Entry entries[] = {
      {"aten::mm", api.cpu_mm_out != nullptr, api.cuda_mm_out != nullptr, call_product<2>},
      {"aten::bmm", api.cpu_bmm_out != nullptr, api.cuda_bmm_out != nullptr, call_product<3>},
      {"aten::addmm", api.cpu_addmm_out != nullptr, api.cuda_addmm_out != nullptr,
       call_sum_of_product<2>},
      {"aten::baddbmm", api.cpu_baddbmm_out != nullptr, api.cuda_baddbmm_out != nullptr,
       call_sum_of_product<3>},
      {"aten::convolution", api.cpu_convolution != nullptr, api.cuda_convolution != nullptr,
       call_convolution},
      {"aten::convolution_backward", api.cpu_convolution_backward != nullptr,
       api.cuda_convolution_backward != nullptr, call_convolution_backward},
      {"mkldnn::_convolution_pointwise", api.cpu_packed_convolution != nullptr, false,
       call_packed_convolution<false>},
      {"mkldnn::_convolution_transpose_pointwise", api.cpu_packed_transposed != nullptr, false,
       call_packed_convolution<true>},
  };
  for (const Entry& entry : entries) {
    if (entry.name != name) continue;
    const bool present =
        (device_type == api.cpu && entry.on_cpu) || (device_type == api.cuda && entry.on_cuda);
    return present ? entry.call : nullptr;
  }
  return find_direct_attention(api, device_type, name);
}

}  // namespace litz
