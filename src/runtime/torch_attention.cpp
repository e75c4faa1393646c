#include "runtime/torch_attention.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/torch_call.h"

namespace litz {
namespace {

// Of torch's functions for variable lengths, which count these between the tensors.
struct Lengths {
  int64_t query = 0;
  int64_t key = 0;
};

void put_integer(int64_t number, LitzValue* result) {
  result->kind = LITZ_INT;
  result->u.i = number;
}

// output, logsumexp, cumulative lengths of query and key, their longest (integers), two of the
// random numbers, debug mask.
CallOutcome deliver_with_lengths(const TorchApi& api, const TorchDevice& device,
                                 const std::array<TorchTensor, 7>& tensors, const Lengths& lengths,
                                 LitzValue* results) {
  const std::span<const TorchTensor> all(tensors);
  const CallOutcome first = deliver(api, device, all.subspan(0, 4), results);
  put_integer(lengths.query, &results[4]);
  put_integer(lengths.key, &results[5]);
  const CallOutcome second = deliver(api, device, all.subspan(4), results + 6);
  return first == CallOutcome::kDone ? second : first;
}

CallOutcome call_cpu_flash(const TorchApi& api, const LitzValue* args, LitzValue* results,
                           TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  const TorchTensor query = a.tensor(0);
  const TorchTensor key = a.tensor(1);
  const TorchTensor value = a.tensor(2);
  const double dropout = a.number(3);
  const int32_t causal = a.flag(4);
  TorchTensor* mask = a.optional_tensor(5);
  double* scale = a.optional_number(6);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 2> out{};
  if (api.cpu_flash_attention(query, key, value, dropout, causal, mask, scale, &out[0], &out[1]) !=
      0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

CallOutcome call_efficient(const TorchApi& api, const LitzValue* args, LitzValue* results,
                           TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  const TorchTensor query = a.tensor(0);
  const TorchTensor key = a.tensor(1);
  const TorchTensor value = a.tensor(2);
  TorchTensor* bias = a.optional_tensor(3);
  const int32_t logsumexp = a.flag(4);
  const double dropout = a.number(5);
  const int32_t causal = a.flag(6);
  double* scale = a.optional_number(7);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 4> out{};
  if (api.cuda_efficient_attention(query, key, value, bias, logsumexp, dropout, causal, scale,
                                   &out[0], &out[1], &out[2], &out[3]) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

CallOutcome call_efficient_backward(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                    TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  std::array<TorchTensor, 9> in{};  // grad, query, key, value, bias, output, logsumexp, two random
  for (int i = 0; i < 9; ++i) in[static_cast<size_t>(i)] = a.tensor(i);
  const double dropout = a.number(9);
  const std::vector<int32_t>& mask = a.flags(10);
  const int32_t causal = a.flag(11);
  double* scale = a.optional_number(12);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 4> out{};
  if (api.cuda_efficient_attention_backward(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7],
                                            in[8], dropout, mask.data(),
                                            static_cast<int64_t>(mask.size()), causal, scale,
                                            &out[0], &out[1], &out[2], &out[3]) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

CallOutcome call_flash(const TorchApi& api, const LitzValue* args, LitzValue* results,
                       TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  const TorchTensor query = a.tensor(0);
  const TorchTensor key = a.tensor(1);
  const TorchTensor value = a.tensor(2);
  const double dropout = a.number(3);
  const int32_t causal = a.flag(4);
  const int32_t debug = a.flag(5);
  double* scale = a.optional_number(6);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 7> out{};
  Lengths longest;
  if (api.cuda_flash_attention(query, key, value, dropout, causal, debug, scale, &out[0], &out[1],
                               &out[2], &out[3], &longest.query, &longest.key, &out[4], &out[5],
                               &out[6]) != 0)
    return CallOutcome::kFailed;
  return deliver_with_lengths(api, temporaries.device(), out, longest, results);
}

CallOutcome call_flash_backward(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  std::array<TorchTensor, 8> in{};  // grad, query, key, value, output, logsumexp, two of lengths
  for (int i = 0; i < 8; ++i) in[static_cast<size_t>(i)] = a.tensor(i);
  const Lengths longest{.query = a.integer(8), .key = a.integer(9)};
  const double dropout = a.number(10);
  const int32_t causal = a.flag(11);
  const TorchTensor seed = a.tensor(12);
  const TorchTensor offset = a.tensor(13);
  double* scale = a.optional_number(14);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 3> out{};
  if (api.cuda_flash_attention_backward(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7],
                                        longest.query, longest.key, dropout, causal, seed, offset,
                                        scale, &out[0], &out[1], &out[2]) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

CallOutcome call_cudnn(const TorchApi& api, const LitzValue* args, LitzValue* results,
                       TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  const TorchTensor query = a.tensor(0);
  const TorchTensor key = a.tensor(1);
  const TorchTensor value = a.tensor(2);
  TorchTensor* bias = a.optional_tensor(3);
  const int32_t logsumexp = a.flag(4);
  const double dropout = a.number(5);
  const int32_t causal = a.flag(6);
  const int32_t debug = a.flag(7);
  double* scale = a.optional_number(8);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 7> out{};
  Lengths longest;
  if (api.cuda_cudnn_attention(query, key, value, bias, logsumexp, dropout, causal, debug, scale,
                               &out[0], &out[1], &out[2], &out[3], &longest.query, &longest.key,
                               &out[4], &out[5], &out[6]) != 0)
    return CallOutcome::kFailed;
  return deliver_with_lengths(api, temporaries.device(), out, longest, results);
}

CallOutcome call_cudnn_backward(const TorchApi& api, const LitzValue* args, LitzValue* results,
                                TorchTemporaries& temporaries) {
  CallArguments a(args, temporaries);
  std::array<TorchTensor, 11> in{};  // as above, then two random, bias, two of lengths
  for (int i = 0; i < 11; ++i) in[static_cast<size_t>(i)] = a.tensor(i);
  const Lengths longest{.query = a.integer(11), .key = a.integer(12)};
  const double dropout = a.number(13);
  const int32_t causal = a.flag(14);
  double* scale = a.optional_number(15);
  if (!a.fits()) return CallOutcome::kNotHandled;
  std::array<TorchTensor, 3> out{};
  if (api.cuda_cudnn_attention_backward(in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7],
                                        in[8], in[9], in[10], longest.query, longest.key, dropout,
                                        causal, scale, &out[0], &out[1], &out[2]) != 0)
    return CallOutcome::kFailed;
  return deliver(api, temporaries.device(), out, results);
}

struct Entry {
  std::string_view name;
  bool is_present;
  DirectOp call;
};

}  // namespace

DirectOp find_direct_attention(const TorchApi& api, int32_t device_type, std::string_view name) {
  if (device_type == api.cpu) {
    return name == "aten::_scaled_dot_product_flash_attention_for_cpu" &&
                   api.cpu_flash_attention != nullptr
               ? call_cpu_flash
               : nullptr;
  }
  if (device_type != api.cuda) return nullptr;
  const Entry entries[] = {
      {"aten::_scaled_dot_product_efficient_attention", api.cuda_efficient_attention != nullptr,
       call_efficient},
      {"aten::_scaled_dot_product_efficient_attention_backward",
       api.cuda_efficient_attention_backward != nullptr, call_efficient_backward},
      {"aten::_scaled_dot_product_flash_attention", api.cuda_flash_attention != nullptr,
       call_flash},
      {"aten::_scaled_dot_product_flash_attention_backward",
       api.cuda_flash_attention_backward != nullptr, call_flash_backward},
      {"aten::_scaled_dot_product_cudnn_attention", api.cuda_cudnn_attention != nullptr,
       call_cudnn},
      {"aten::_scaled_dot_product_cudnn_attention_backward",
       api.cuda_cudnn_attention_backward != nullptr, call_cudnn_backward},
  };
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry.is_present ? entry.call : nullptr;
  }
  return nullptr;
}

}  // namespace litz
