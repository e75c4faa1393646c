#include "runtime/torch_ops.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace litz {
namespace {

bool is_cuda(const TorchApi& api, const TorchTemporaries& temporaries) {
  return temporaries.device().type == api.cuda;
}

bool is_tensor(const LitzValue& value, int32_t ndim) {
  return value.kind == LITZ_TENSOR && value.u.tensor->ndim == ndim;
}

bool is_floating_tensor(const LitzValue& value) {
  return value.kind == LITZ_TENSOR && is_floating(static_cast<DType>(value.u.tensor->dtype));
}

std::optional<double> number(const LitzValue& value) {
  if (value.kind == LITZ_DOUBLE) return value.u.d;
  if (value.kind == LITZ_INT) return static_cast<double>(value.u.i);
  return std::nullopt;
}

// A tensor argument that may be None, as torch's functions take it: a pointer to the handle.
class OptionalHandle {
 public:
  OptionalHandle(const LitzValue& value, TorchTemporaries& temporaries)
      : handle_(value.kind == LITZ_TENSOR ? temporaries.handle(*value.u.tensor) : nullptr) {}
  TorchTensor* get() { return handle_ != nullptr ? &handle_ : nullptr; }

 private:
  TorchTensor handle_;
};

std::vector<int64_t> integers(const LitzValue& list) {
  std::vector<int64_t> numbers;
  for (int32_t i = 0; i < list.count; ++i) numbers.push_back(list.u.list[i].u.i);
  return numbers;
}

bool is_integer_list(const LitzValue& value) {
  if (value.kind != LITZ_LIST) return false;
  for (int32_t i = 0; i < value.count; ++i) {
    if (value.u.list[i].kind != LITZ_INT) return false;
  }
  return true;
}

CallOutcome deliver_new(const TorchApi& api, const TorchDevice& device, TorchTensor tensor,
                        LitzValue* result) {
  return deliver_tensor(api, device, tensor, result).empty() ? CallOutcome::kDone
                                                             : CallOutcome::kFailed;
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
  return deliver_new(api, temporaries.device(), out, result);
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
  const std::optional<double> beta = number(args[3]);
  const std::optional<double> alpha = number(args[4]);
  if (!beta || !alpha) return CallOutcome::kNotHandled;
  const TorchTensor self = temporaries.handle(*args[0].u.tensor);
  const TorchTensor left = temporaries.handle(*args[1].u.tensor);
  const TorchTensor right = temporaries.handle(*args[2].u.tensor);
  if (self == nullptr || left == nullptr || right == nullptr) return CallOutcome::kFailed;
  const auto function = is_cuda(api, temporaries)
                            ? (ndim == 2 ? api.cuda_addmm_out : api.cuda_baddbmm_out)
                            : (ndim == 2 ? api.cpu_addmm_out : api.cpu_baddbmm_out);
  return multiply(api, *args[1].u.tensor, *args[2].u.tensor, results, temporaries,
                  [&](TorchTensor out) { return function(out, self, left, right, *beta, *alpha); });
}

CallOutcome call_convolution(const TorchApi& api, const LitzValue* args, LitzValue* results,
                             TorchTemporaries& temporaries) {
  if (args[0].kind != LITZ_TENSOR || args[1].kind != LITZ_TENSOR) return CallOutcome::kNotHandled;
  for (int list : {3, 4, 5, 7}) {
    if (!is_integer_list(args[list])) return CallOutcome::kNotHandled;
  }
  const TorchTensor input = temporaries.handle(*args[0].u.tensor);
  const TorchTensor weight = temporaries.handle(*args[1].u.tensor);
  if (input == nullptr || weight == nullptr) return CallOutcome::kFailed;
  OptionalHandle bias(args[2], temporaries);
  const std::vector<int64_t> stride = integers(args[3]);
  const std::vector<int64_t> padding = integers(args[4]);
  const std::vector<int64_t> dilation = integers(args[5]);
  const std::vector<int64_t> output_padding = integers(args[7]);
  const auto length = [](const std::vector<int64_t>& v) { return static_cast<int64_t>(v.size()); };
  TorchTensor out = nullptr;
  const auto function = is_cuda(api, temporaries) ? api.cuda_convolution : api.cpu_convolution;
  if (function(input, weight, bias.get(), stride.data(), length(stride), padding.data(),
               length(padding), dilation.data(), length(dilation), args[6].u.i != 0,
               output_padding.data(), length(output_padding), args[8].u.i, &out) != 0) {
    return CallOutcome::kFailed;
  }
  return deliver_new(api, temporaries.device(), out, results);
}

// With or without an output padding behind the padding. Of what oneDNN could do behind it nothing
// is asked for: its ReLU makes a NaN 0.
template <bool transposed>
CallOutcome call_packed_convolution(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                    TorchTemporaries& temporaries) {
  constexpr int kLists = transposed ? 4 : 3;
  const LitzValue* rest = args + 3 + kLists;  // groups, attr, scalars, algorithm
  if (args[0].kind != LITZ_TENSOR || args[1].kind != LITZ_TENSOR || rest[1].kind != LITZ_STRING ||
      rest[2].kind != LITZ_LIST || rest[2].count != 0 || rest[3].kind != LITZ_STRING)
    return CallOutcome::kNotHandled;
  std::array<std::vector<int64_t>, kLists> lists;
  for (int i = 0; i < kLists; ++i) {
    if (!is_integer_list(args[3 + i])) return CallOutcome::kNotHandled;
    lists[i] = integers(args[3 + i]);
  }
  const TorchTensor input = temporaries.handle(*args[0].u.tensor);
  const TorchTensor weight = temporaries.handle(*args[1].u.tensor);
  if (input == nullptr || weight == nullptr) return CallOutcome::kFailed;
  OptionalHandle bias(args[2], temporaries);
  const auto data = [&](int i) { return lists[i].data(); };
  const auto length = [&](int i) { return static_cast<int64_t>(lists[i].size()); };
  const char* algorithm = rest[3].u.s;
  TorchTensor out = nullptr;
  TorchStatus status = 0;
  if constexpr (transposed) {
    status = api.cpu_packed_transposed(input, weight, bias.get(), data(0), length(0), data(1),
                                       length(1), data(2), length(2), data(3), length(3),
                                       rest[0].u.i, rest[1].u.s, nullptr, 0, &algorithm, &out);
  } else {
    status = api.cpu_packed_convolution(input, weight, bias.get(), data(0), length(0), data(1),
                                        length(1), data(2), length(2), rest[0].u.i, rest[1].u.s,
                                        nullptr, 0, &algorithm, &out);
  }
  if (status != 0) return CallOutcome::kFailed;
  return deliver_new(api, temporaries.device(), out, results);
}

CallOutcome call_flash_attention(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                 TorchTemporaries& temporaries) {
  for (int i : {0, 1, 2}) {
    if (args[i].kind != LITZ_TENSOR) return CallOutcome::kNotHandled;
  }
  const TorchTensor query = temporaries.handle(*args[0].u.tensor);
  const TorchTensor key = temporaries.handle(*args[1].u.tensor);
  const TorchTensor value = temporaries.handle(*args[2].u.tensor);
  if (query == nullptr || key == nullptr || value == nullptr) return CallOutcome::kFailed;
  OptionalHandle mask(args[5], temporaries);
  std::optional<double> scale = number(args[6]);
  TorchTensor out = nullptr;
  TorchTensor logsumexp = nullptr;
  if (api.cpu_flash_attention(query, key, value, number(args[3]).value_or(0.0), args[4].u.i != 0,
                              mask.get(), scale ? &*scale : nullptr, &out, &logsumexp) != 0) {
    return CallOutcome::kFailed;
  }
  const CallOutcome first = deliver_new(api, temporaries.device(), out, &results[0]);
  const CallOutcome second = deliver_new(api, temporaries.device(), logsumexp, &results[1]);
  return first == CallOutcome::kDone ? second : first;
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
      {"mkldnn::_convolution_pointwise", api.cpu_packed_convolution != nullptr, false,
       call_packed_convolution<false>},
      {"mkldnn::_convolution_transpose_pointwise", api.cpu_packed_transposed != nullptr, false,
       call_packed_convolution<true>},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", api.cpu_flash_attention != nullptr,
       false, call_flash_attention},
  };
  for (const Entry& entry : entries) {
    if (entry.name != name) continue;
    const bool present =
        (device_type == api.cpu && entry.on_cpu) || (device_type == api.cuda && entry.on_cuda);
    return present ? entry.call : nullptr;
  }
  return nullptr;
}

}  // namespace litz
