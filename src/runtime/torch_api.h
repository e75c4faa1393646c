// PyTorch's stable C interface, found in the running process.
//
// Litz is built without libtorch. The functions are exported by libtorch_cpu.so and looked up by
// name once, when the PyTorch door opens; what a torch release lacks is nullptr here, and the
// callers have another way. All return zero on success. Tensor handles are pointers to at::Tensor
// objects; "new reference" ones are freed with delete_tensor_object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/dtype.h"

namespace litz {

using TorchTensor = void*;    // AtenTensorHandle
using TorchList = void*;      // StableListHandle
using TorchString = void*;    // StringHandle
using TorchStack = uint64_t;  // StableIValue
using TorchStatus = int32_t;

// Signatures that a function has for each kind of device.
using TorchProduct = TorchStatus(TorchTensor out, TorchTensor, TorchTensor);
using TorchScaledSum = TorchStatus(TorchTensor out, TorchTensor, TorchTensor, TorchTensor,
                                   double beta, double alpha);
using TorchConvolution = TorchStatus(TorchTensor input, TorchTensor weight, TorchTensor* bias,
                                     const int64_t* stride, int64_t, const int64_t* padding,
                                     int64_t, const int64_t* dilation, int64_t, int32_t transposed,
                                     const int64_t* output_padding, int64_t, int64_t groups,
                                     TorchTensor*);
using TorchIntegers = TorchStatus(int64_t low, int64_t high, const int64_t* sizes, int64_t,
                                  int32_t* dtype, int32_t* layout, int32_t* device, int32_t index,
                                  int32_t* pinned, TorchTensor*);
using TorchConvolutionBackward = TorchStatus(
    TorchTensor gradient, TorchTensor input, TorchTensor weight, const int64_t** bias_sizes,
    int64_t, const int64_t* stride, int64_t, const int64_t* padding, int64_t,
    const int64_t* dilation, int64_t, int32_t transposed, const int64_t* output_padding, int64_t,
    int64_t groups, const int32_t* mask, int64_t, TorchTensor*, TorchTensor*, TorchTensor*);
// Of a convolution with a weight that oneDNN has packed.
using TorchPacked = TorchStatus(TorchTensor input, TorchTensor weight, TorchTensor* bias,
                                const int64_t* padding, int64_t, const int64_t* stride, int64_t,
                                const int64_t* dilation, int64_t, int64_t groups,
                                const char* operation, const double** numbers, int64_t,
                                const char** algorithm, TorchTensor*);
using TorchPackedTransposed = TorchStatus(TorchTensor input, TorchTensor weight, TorchTensor* bias,
                                          const int64_t* padding, int64_t,
                                          const int64_t* output_padding, int64_t,
                                          const int64_t* stride, int64_t, const int64_t* dilation,
                                          int64_t, int64_t groups, const char* operation,
                                          const double** numbers, int64_t, const char** algorithm,
                                          TorchTensor*);

// The CPU has no index; with one, torch_from_blob finds the memory on another device.
inline constexpr int32_t kNoDeviceIndex = -1;

// X(member, symbol, signature): without these there is no PyTorch door.
#define LITZ_TORCH_REQUIRED(X)                                                                    \
  X(empty_strided, aoti_torch_empty_strided,                                                      \
    TorchStatus(int64_t ndim, const int64_t*, const int64_t*, int32_t dtype, int32_t device_type, \
                int32_t device_index, TorchTensor*))                                              \
  X(from_blob, aoti_torch_create_tensor_from_blob,                                                \
    TorchStatus(void*, int64_t ndim, const int64_t*, const int64_t*, int64_t offset,              \
                int32_t dtype, int32_t device_type, int32_t device_index, TorchTensor*))          \
  X(reinterpret_tensor, aoti_torch__reinterpret_tensor,                                           \
    TorchStatus(TorchTensor, int64_t ndim, const int64_t*, const int64_t*, int64_t offset,        \
                TorchTensor*))                                                                    \
  X(copy, aoti_torch_copy_, TorchStatus(TorchTensor self, TorchTensor source, int32_t))           \
  X(delete_tensor, aoti_torch_delete_tensor_object, TorchStatus(TorchTensor))                     \
  X(new_handle, aoti_torch_new_tensor_handle, TorchStatus(TorchTensor, TorchTensor*))             \
  X(get_data_ptr, aoti_torch_get_data_ptr, TorchStatus(TorchTensor, void**))                      \
  X(get_dim, aoti_torch_get_dim, TorchStatus(TorchTensor, int64_t*))                              \
  X(get_sizes, aoti_torch_get_sizes, TorchStatus(TorchTensor, int64_t**))                         \
  X(get_strides, aoti_torch_get_strides, TorchStatus(TorchTensor, int64_t**))                     \
  X(get_storage_offset, aoti_torch_get_storage_offset, TorchStatus(TorchTensor, int64_t*))        \
  X(get_dtype, aoti_torch_get_dtype, TorchStatus(TorchTensor, int32_t*))                          \
  X(get_device_type, aoti_torch_get_device_type, TorchStatus(TorchTensor, int32_t*))              \
  X(get_device_index, aoti_torch_get_device_index, TorchStatus(TorchTensor, int32_t*))            \
  X(device_type_cpu, aoti_torch_device_type_cpu, int32_t())                                       \
  X(device_type_cuda, aoti_torch_device_type_cuda, int32_t())

// X(member, symbol, signature): used where the installed torch has them.
#define LITZ_TORCH_OPTIONAL(X)                                                                  \
  X(is_defined, aoti_torch_is_defined, TorchStatus(TorchTensor, bool*))                         \
  X(new_undefined, aoti_torch_new_uninitialized_tensor, TorchStatus(TorchTensor*))              \
  X(get_layout, aoti_torch_get_layout, TorchStatus(TorchTensor, int32_t*))                      \
  X(layout_strided, aoti_torch_layout_strided, int32_t())                                       \
  X(abi_version, aoti_torch_abi_version, uint64_t())                                            \
  X(from_blob_with_deleter, torch_from_blob,                                                    \
    TorchStatus(void*, int64_t ndim, const int64_t*, const int64_t*, int64_t offset,            \
                int32_t dtype, int32_t device_type, int32_t device_index, TorchTensor*,         \
                int32_t layout, const uint8_t*, int64_t, void (*deleter)(void*, void*), void*)) \
  X(parallel_for, torch_parallel_for,                                                           \
    TorchStatus(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*), void*))           \
  X(get_num_threads, torch_get_num_threads, TorchStatus(uint32_t*))                             \
  X(cxx_get_num_threads, _ZN2at15get_num_threadsEv, int())                                      \
  X(cxx_version, _ZNK2at10TensorBase8_versionEv, int64_t(TorchTensor))                          \
  X(call_dispatcher, torch_call_dispatcher,                                                     \
    TorchStatus(const char* name, const char* overload, TorchStack*, uint64_t build_version))   \
  X(new_list, torch_new_list_reserve_size, TorchStatus(size_t, TorchList*))                     \
  X(list_push_back, torch_list_push_back, TorchStatus(TorchList, TorchStack))                   \
  X(list_size, torch_list_size, TorchStatus(TorchList, size_t*))                                \
  X(list_get_item, torch_list_get_item, TorchStatus(TorchList, size_t, TorchStack*))            \
  X(delete_list, torch_delete_list, TorchStatus(TorchList))                                     \
  X(new_string, torch_new_string_handle, TorchStatus(const char*, size_t, TorchString*))        \
  X(delete_string, torch_delete_string, TorchStatus(TorchString))                               \
  X(new_stable_ivalue, torch_new_stable_ivalue, TorchStatus(TorchStack**))                      \
  X(delete_stable_ivalue, torch_delete_stable_ivalue, TorchStatus(TorchStack*))                 \
  X(what, torch_exception_get_what_without_backtrace, const char*())                            \
  X(cpu_mm_out, aoti_torch_cpu_mm_out, TorchProduct)                                            \
  X(cpu_bmm_out, aoti_torch_cpu_bmm_out, TorchProduct)                                          \
  X(cpu_addmm_out, aoti_torch_cpu_addmm_out, TorchScaledSum)                                    \
  X(cpu_baddbmm_out, aoti_torch_cpu_baddbmm_out, TorchScaledSum)                                \
  X(cpu_convolution, aoti_torch_cpu_convolution, TorchConvolution)                              \
  X(cpu_convolution_backward, aoti_torch_cpu_convolution_backward, TorchConvolutionBackward)    \
  X(cpu_packed_convolution, aoti_torch_cpu_mkldnn__convolution_pointwise, TorchPacked)          \
  X(cpu_packed_transposed, aoti_torch_cpu_mkldnn__convolution_transpose_pointwise,              \
    TorchPackedTransposed)                                                                      \
  X(cpu_randint_low, aoti_torch_cpu_randint_low, TorchIntegers)                                 \
  X(cpu_flash_attention, aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu,            \
    TorchStatus(TorchTensor query, TorchTensor key, TorchTensor value, double dropout,          \
                int32_t is_causal, TorchTensor* mask, double* scale, TorchTensor*, TorchTensor*))

// X(member, symbol, signature): of libtorch_cuda.so, which a torch for CPUs lacks.
#define LITZ_TORCH_CUDA(X)                                                                         \
  X(cuda_stream, aoti_torch_get_current_cuda_stream, TorchStatus(int32_t index, void** stream))    \
  X(cuda_create_guard, aoti_torch_create_cuda_guard, TorchStatus(int32_t index, void** guard))     \
  X(cuda_delete_guard, aoti_torch_delete_cuda_guard, TorchStatus(void* guard))                     \
  X(cuda_mm_out, aoti_torch_cuda_mm_out, TorchProduct)                                             \
  X(cuda_bmm_out, aoti_torch_cuda_bmm_out, TorchProduct)                                           \
  X(cuda_addmm_out, aoti_torch_cuda_addmm_out, TorchScaledSum)                                     \
  X(cuda_baddbmm_out, aoti_torch_cuda_baddbmm_out, TorchScaledSum)                                 \
  X(cuda_convolution, aoti_torch_cuda_convolution, TorchConvolution)                               \
  X(cuda_convolution_backward, aoti_torch_cuda_convolution_backward, TorchConvolutionBackward)     \
  X(cuda_randint_low, aoti_torch_cuda_randint_low, TorchIntegers)                                  \
  X(cuda_efficient_attention, aoti_torch_cuda__scaled_dot_product_efficient_attention,             \
    TorchStatus(TorchTensor query, TorchTensor key, TorchTensor value, TorchTensor* bias,          \
                int32_t logsumexp, double dropout, int32_t is_causal, double* scale, TorchTensor*, \
                TorchTensor*, TorchTensor*, TorchTensor*))                                         \
  X(cuda_efficient_attention_backward,                                                             \
    aoti_torch_cuda__scaled_dot_product_efficient_attention_backward,                              \
    TorchStatus(TorchTensor gradient, TorchTensor query, TorchTensor key, TorchTensor value,       \
                TorchTensor bias, TorchTensor output, TorchTensor logsumexp, TorchTensor seed,     \
                TorchTensor offset, double dropout, const int32_t* mask, int64_t,                  \
                int32_t is_causal, double* scale, TorchTensor*, TorchTensor*, TorchTensor*,        \
                TorchTensor*))                                                                     \
  X(cuda_flash_attention, aoti_torch_cuda__scaled_dot_product_flash_attention,                     \
    TorchStatus(TorchTensor query, TorchTensor key, TorchTensor value, double dropout,             \
                int32_t is_causal, int32_t debug, double* scale, TorchTensor*, TorchTensor*,       \
                TorchTensor*, TorchTensor*, int64_t*, int64_t*, TorchTensor*, TorchTensor*,        \
                TorchTensor*))                                                                     \
  X(cuda_flash_attention_backward, aoti_torch_cuda__scaled_dot_product_flash_attention_backward,   \
    TorchStatus(TorchTensor gradient, TorchTensor query, TorchTensor key, TorchTensor value,       \
                TorchTensor output, TorchTensor logsumexp, TorchTensor query_lengths,              \
                TorchTensor key_lengths, int64_t longest_query, int64_t longest_key,               \
                double dropout, int32_t is_causal, TorchTensor seed, TorchTensor offset,           \
                double* scale, TorchTensor*, TorchTensor*, TorchTensor*))                          \
  X(cuda_cudnn_attention, aoti_torch_cuda__scaled_dot_product_cudnn_attention,                     \
    TorchStatus(TorchTensor query, TorchTensor key, TorchTensor value, TorchTensor* bias,          \
                int32_t logsumexp, double dropout, int32_t is_causal, int32_t debug,               \
                double* scale, TorchTensor*, TorchTensor*, TorchTensor*, TorchTensor*, int64_t*,   \
                int64_t*, TorchTensor*, TorchTensor*, TorchTensor*))                               \
  X(cuda_cudnn_attention_backward, aoti_torch_cuda__scaled_dot_product_cudnn_attention_backward,   \
    TorchStatus(TorchTensor gradient, TorchTensor query, TorchTensor key, TorchTensor value,       \
                TorchTensor output, TorchTensor logsumexp, TorchTensor seed, TorchTensor offset,   \
                TorchTensor bias, TorchTensor query_lengths, TorchTensor key_lengths,              \
                int64_t longest_query, int64_t longest_key, double dropout, int32_t is_causal,     \
                double* scale, TorchTensor*, TorchTensor*, TorchTensor*))

// Where a tensor's memory is, in torch's numbers.
struct TorchDevice {
  int32_t type = 0;
  int32_t index = kNoDeviceIndex;

  friend bool operator==(const TorchDevice&, const TorchDevice&) = default;
};

struct TorchApi {
#define LITZ_TORCH_MEMBER(member, symbol, ...) \
  using member##_type = __VA_ARGS__;           \
  member##_type* member = nullptr;
  LITZ_TORCH_REQUIRED(LITZ_TORCH_MEMBER)
  LITZ_TORCH_OPTIONAL(LITZ_TORCH_MEMBER)
  LITZ_TORCH_CUDA(LITZ_TORCH_MEMBER)
#undef LITZ_TORCH_MEMBER

  // Throws UserError where torch is not loaded in this process or lacks a required function.
  static TorchApi load();

  // torch's number of a dtype, and back; kOther for those that Litz does not know.
  int32_t to_torch(DType dtype) const { return to_torch_[static_cast<size_t>(dtype)]; }
  DType from_torch(int32_t number) const {
    const auto index = static_cast<size_t>(number);
    return index < from_torch_.size() ? from_torch_[index] : DType::kOther;
  }

  int32_t cpu = 0;      // device type of the CPU
  int32_t cuda = 0;     // and of CUDA devices
  int32_t strided = 0;  // layout of dense tensors

  // Parses a device as torch prints it: "cpu", "cuda", "cuda:1". Nothing for other types.
  std::optional<TorchDevice> device(std::string_view text) const;
  // "cuda:1"; of a type that Litz does not know "another device".
  std::string device_text(const TorchDevice& device) const;

  // The message of the last failure on this thread, or an empty string where torch does not tell.
  std::string last_error() const { return what != nullptr ? what() : std::string(); }

 private:
  std::array<int32_t, 32> to_torch_{};
  std::array<DType, 64> from_torch_{};
};

}  // namespace litz
