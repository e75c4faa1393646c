// Arguments and results of a library op for a C function of torch's own.
#pragma once

#include <litz/artifact.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/torch_api.h"
#include "runtime/torch_args.h"
#include "runtime/torch_ops.h"
#include "support/error.h"

namespace litz {

// Reads arguments by position as the function takes them; what is read lives as long as this. Where
// one is of another kind `fits` is false from then on, and the function must not be called.
class CallArguments {
 public:
  CallArguments(const LitzValue* args, TorchTemporaries& temporaries)
      : args_(args), temporaries_(temporaries) {}
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  bool fits() const { return fits_; }

  // None is an undefined tensor.
  TorchTensor tensor(int i);
  // None is nullptr.
  TorchTensor* optional_tensor(int i);
  double number(int i);
  double* optional_number(int i);
  int64_t integer(int i);
  int32_t flag(int i) { return integer(i) != 0 ? 1 : 0; }
  const char* text(int i);
  const std::vector<int64_t>& integers(int i);
  const std::vector<int32_t>& flags(int i);

 private:
  const LitzValue& expect(int i, bool is_right) {
    fits_ = fits_ && is_right;
    return args_[i];
  }

  const LitzValue* args_;
  TorchTemporaries& temporaries_;
  bool fits_ = true;
  // Each library call makes one of these: what is read keeps its place without an allocation.
  template <class T>
  class Kept {
   public:
    T& add(T value) {
      LITZ_CHECK(count_ < kept_.size(), "an op takes more arguments of one kind than are kept");
      return kept_[count_++] = std::move(value);
    }

   private:
    std::array<T, 8> kept_{};
    size_t count_ = 0;
  };
  Kept<TorchTensor> tensors_;
  Kept<double> numbers_;
  Kept<std::vector<int64_t>> integers_;
  Kept<std::vector<int32_t>> flags_;
};

// Gives the results to the caller, in order; all are taken over.
CallOutcome deliver(const TorchApi& api, const TorchDevice& device,
                    std::span<const TorchTensor> tensors, LitzValue* results);

}  // namespace litz
