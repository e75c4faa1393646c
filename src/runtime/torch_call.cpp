#include "runtime/torch_call.h"

#include <string>

namespace litz {

namespace {

bool is_integer(const LitzValue& value) {
  return value.kind == LITZ_INT || value.kind == LITZ_BOOL;
}

bool is_number(const LitzValue& value) { return value.kind == LITZ_DOUBLE || is_integer(value); }

double number_of(const LitzValue& value) {
  return value.kind == LITZ_DOUBLE ? value.u.d : static_cast<double>(value.u.i);
}

bool is_list_of_integers(const LitzValue& value) {
  if (value.kind != LITZ_LIST) return false;
  for (int32_t i = 0; i < value.count; ++i) {
    if (!is_integer(value.u.list[i])) return false;
  }
  return true;
}

}  // namespace

TorchTensor CallArguments::tensor(int i) {
  const LitzValue& value = args_[i];
  const TorchTensor found = value.kind == LITZ_TENSOR ? temporaries_.handle(*value.u.tensor)
                            : value.kind == LITZ_NONE ? temporaries_.undefined()
                                                      : nullptr;
  fits_ = fits_ && found != nullptr;
  return found;
}

TorchTensor* CallArguments::optional_tensor(int i) {
  if (args_[i].kind == LITZ_NONE) return nullptr;
  return &tensors_.add(tensor(i));
}

double CallArguments::number(int i) {
  const LitzValue& value = expect(i, is_number(args_[i]));
  return fits_ ? number_of(value) : 0;
}

double* CallArguments::optional_number(int i) {
  if (args_[i].kind == LITZ_NONE) return nullptr;
  return &numbers_.add(number(i));
}

int64_t CallArguments::integer(int i) {
  const LitzValue& value = expect(i, is_integer(args_[i]));
  return fits_ ? value.u.i : 0;
}

const char* CallArguments::text(int i) {
  const LitzValue& value = expect(i, args_[i].kind == LITZ_STRING);
  return fits_ ? value.u.s : "";
}

const std::vector<int64_t>& CallArguments::integers(int i) {
  std::vector<int64_t>& numbers = integers_.add({});
  const LitzValue& list = expect(i, is_list_of_integers(args_[i]));
  if (!fits_) return numbers;
  for (int32_t k = 0; k < list.count; ++k) numbers.push_back(list.u.list[k].u.i);
  return numbers;
}

const std::vector<int32_t>& CallArguments::flags(int i) {
  std::vector<int32_t>& flags = flags_.add({});
  for (int64_t number : integers(i)) flags.push_back(number != 0 ? 1 : 0);
  return flags;
}

CallOutcome deliver(const TorchApi& api, const TorchDevice& device,
                    std::span<const TorchTensor> tensors, LitzValue* results) {
  bool done = true;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (done) {
      done = deliver_tensor(api, device, tensors[k], &results[k]).empty();
    } else if (tensors[k] != nullptr) {
      api.delete_tensor(tensors[k]);
    }
  }
  return done ? CallOutcome::kDone : CallOutcome::kFailed;
}

}  // namespace litz
