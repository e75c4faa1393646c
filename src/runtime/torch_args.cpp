#include "runtime/torch_args.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/host_table.h"

namespace litz {
namespace {

constexpr std::pair<std::string_view, TorchBaseType> kBaseTypes[] = {
    {"Tensor", TorchBaseType::kTensor},
    {"int", TorchBaseType::kInt},
    {"SymInt", TorchBaseType::kInt},
    {"float", TorchBaseType::kFloat},
    {"bool", TorchBaseType::kBool},
    {"str", TorchBaseType::kString},
    {"ScalarType", TorchBaseType::kDType},
    {"Layout", TorchBaseType::kLayout},
    {"MemoryFormat", TorchBaseType::kMemoryFormat},
    {"Device", TorchBaseType::kDevice},
};

TorchStack bits(double value) {
  TorchStack entry;
  std::memcpy(&entry, &value, sizeof(entry));
  return entry;
}

TorchStack bits(void* pointer) { return reinterpret_cast<TorchStack>(pointer); }

void* pointer_of(TorchStack entry) { return reinterpret_cast<void*>(entry); }

bool is_integer(const LitzValue& value) {
  return value.kind == LITZ_INT || value.kind == LITZ_BOOL;
}

TorchType element_of(const TorchType& type) {
  return {.base = type.base, .optional = type.optional_element};
}

// torch 2.13 asks for its own allocation of the box of an optional; before that it is `new`, which
// another C++ runtime's `delete` would have to match.
bool pack_optional(const TorchApi& api, TorchType type, const LitzValue& value,
                   TorchTemporaries& temporaries, TorchStack* entry) {
  if (value.kind == LITZ_NONE) {
    *entry = 0;
    return true;
  }
  type.optional = false;
  TorchStack inner;
  if (!pack(api, type, value, temporaries, &inner)) return false;
  TorchStack* box = nullptr;
  if (api.new_stable_ivalue(&box) != 0) {
    discard(api, type, inner);
    return false;
  }
  *box = inner;
  *entry = bits(box);
  return true;
}

bool pack_list(const TorchApi& api, const TorchType& type, const LitzValue& value,
               TorchTemporaries& temporaries, TorchStack* entry) {
  if (value.kind != LITZ_LIST) return false;
  TorchList list = nullptr;
  if (api.new_list(static_cast<size_t>(value.count), &list) != 0) return false;
  const TorchType element = element_of(type);
  for (int32_t i = 0; i < value.count; ++i) {
    TorchStack item;
    if (!pack(api, element, value.u.list[i], temporaries, &item)) {
      discard(api, type, bits(list));
      return false;
    }
    if (api.list_push_back(list, item) != 0) {
      discard(api, element, item);
      discard(api, type, bits(list));
      return false;
    }
  }
  *entry = bits(list);
  return true;
}

bool pack_tensor(const TorchApi& api, const LitzValue& value, TorchTemporaries& temporaries,
                 TorchStack* entry) {
  TorchTensor owned = nullptr;
  if (value.kind == LITZ_NONE && api.new_undefined != nullptr) {
    if (api.new_undefined(&owned) != 0) return false;
    *entry = bits(owned);
    return true;
  }
  if (value.kind != LITZ_TENSOR) return false;
  const TorchTensor handle = temporaries.handle(*value.u.tensor);
  if (handle == nullptr || api.new_handle(handle, &owned) != 0) return false;
  *entry = bits(owned);
  return true;
}

bool pack_string(const TorchApi& api, const LitzValue& value, TorchStack* entry) {
  if (value.kind != LITZ_STRING) return false;
  TorchString string = nullptr;
  if (api.new_string(value.u.s, std::strlen(value.u.s), &string) != 0) return false;
  *entry = bits(string);
  return true;
}

// A device is its type in the upper half and its index in the lower; -1 is "no index".
bool pack_device(const TorchApi& api, const LitzValue& value, TorchStack* entry) {
  if (value.kind != LITZ_DEVICE) return false;
  const std::optional<TorchDevice> device = api.device(value.u.s);
  if (!device) return false;
  *entry = (static_cast<TorchStack>(static_cast<uint32_t>(device->type)) << 32) |
           static_cast<uint32_t>(device->index);
  return true;
}

}  // namespace

TorchType parse_torch_type(std::string_view text) {
  TorchType type;
  const size_t end = text.find_first_of("(?[");
  const std::string_view base = text.substr(0, end);
  for (const auto& [name, value] : kBaseTypes) {
    if (name == base) type.base = value;
  }
  std::string_view rest = end == std::string_view::npos ? std::string_view() : text.substr(end);
  if (rest.starts_with('(')) rest.remove_prefix(rest.find(')') + 1);
  if (rest.starts_with("?[")) {
    type.optional_element = true;
    rest.remove_prefix(1);
  }
  if (rest.starts_with('[')) {
    type.list = true;
    rest.remove_prefix(rest.find(']') + 1);
    if (rest.starts_with('(')) rest.remove_prefix(rest.find(')') + 1);
  }
  type.optional = rest.starts_with('?');
  return type;
}

TorchArena::~TorchArena() {
  for (const auto& [dtype, tensor] : whole_) api_.delete_tensor(tensor);
}

void TorchArena::set_block(void* data, int64_t bytes) {
  data_ = static_cast<char*>(data);
  bytes_ = bytes;
}

TorchTensor TorchArena::whole(DType dtype) {
  for (const auto& [known, tensor] : whole_) {
    if (known == dtype) return tensor;
  }
  const int64_t count = bytes_ / size_of(dtype);
  const int64_t stride = 1;
  TorchTensor made = nullptr;
  if (api_.from_blob(data_, 1, &count, &stride, 0, api_.to_torch(dtype), device_.type,
                     device_.index, &made) != 0)
    return nullptr;
  whole_.emplace_back(dtype, made);
  return made;
}

TorchTensor TorchArena::make(const LitzTensor& tensor) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  const int64_t bytes = storage_bytes(tensor);
  // Addresses of different blocks are compared as numbers.
  const auto begin = reinterpret_cast<uintptr_t>(data_);
  const auto at = reinterpret_cast<uintptr_t>(tensor.data);
  if (data_ == nullptr || at < begin || bytes > bytes_ ||
      at - begin > static_cast<uintptr_t>(bytes_ - bytes))
    return nullptr;
  const auto offset = static_cast<int64_t>(at - begin);
  const int64_t size = size_of(dtype);
  if (size == 0 || offset % size != 0) return nullptr;
  const TorchTensor base = whole(dtype);
  TorchTensor made = nullptr;
  if (base == nullptr || api_.reinterpret_tensor(base, tensor.ndim, tensor.sizes, tensor.strides,
                                                 offset / size, &made) != 0)
    return nullptr;
  return made;
}

TorchTemporaries::~TorchTemporaries() {
  for (TorchTensor tensor : tensors_) api_.delete_tensor(tensor);
}

TorchTensor TorchTemporaries::handle(const LitzTensor& tensor) {
  if (tensor.handle != nullptr) return tensor.handle;
  TorchTensor made = arena_ != nullptr ? arena_->make(tensor) : nullptr;
  if (made != nullptr) {
    tensors_.push_back(made);
    return made;
  }
  const int32_t dtype = api_.to_torch(static_cast<DType>(tensor.dtype));
  // torch asks the device whose memory it is, and nothing is nobody's.
  const bool is_empty = device_.type != api_.cpu && storage_bytes(tensor) == 0;
  const TorchStatus status =
      is_empty ? api_.empty_strided(tensor.ndim, tensor.sizes, tensor.strides, dtype, device_.type,
                                    device_.index, &made)
               : api_.from_blob(tensor.data, tensor.ndim, tensor.sizes, tensor.strides, 0, dtype,
                                device_.type, device_.index, &made);
  if (status != 0) return nullptr;
  tensors_.push_back(made);
  return made;
}

TorchTensor TorchTemporaries::undefined() {
  TorchTensor made = nullptr;
  if (api_.new_undefined == nullptr || api_.new_undefined(&made) != 0) return nullptr;
  tensors_.push_back(made);
  return made;
}

bool can_pack(const TorchApi& api, const TorchType& type) {
  if (api.call_dispatcher == nullptr || type.base == TorchBaseType::kOther) return false;
  const bool boxes = type.optional || type.optional_element;
  if (boxes && (api.new_stable_ivalue == nullptr || api.delete_stable_ivalue == nullptr)) {
    return false;
  }
  if (type.list &&
      (api.new_list == nullptr || api.list_push_back == nullptr || api.list_size == nullptr ||
       api.list_get_item == nullptr || api.delete_list == nullptr)) {
    return false;
  }
  return type.base != TorchBaseType::kString ||
         (api.new_string != nullptr && api.delete_string != nullptr);
}

bool pack(const TorchApi& api, const TorchType& type, const LitzValue& value,
          TorchTemporaries& temporaries, TorchStack* entry) {
  if (type.optional) return pack_optional(api, type, value, temporaries, entry);
  if (type.list) return pack_list(api, type, value, temporaries, entry);
  switch (type.base) {
    case TorchBaseType::kTensor:
      return pack_tensor(api, value, temporaries, entry);
    case TorchBaseType::kInt:
      *entry = static_cast<TorchStack>(value.u.i);
      return is_integer(value);
    case TorchBaseType::kBool:
      *entry = value.u.i != 0 ? 1 : 0;
      return is_integer(value);
    case TorchBaseType::kFloat:
      *entry = bits(value.kind == LITZ_DOUBLE ? value.u.d : static_cast<double>(value.u.i));
      return value.kind == LITZ_DOUBLE || is_integer(value);
    case TorchBaseType::kString:
      return pack_string(api, value, entry);
    case TorchBaseType::kDType: {
      if (value.kind != LITZ_DTYPE) return false;
      const int32_t number = api.to_torch(static_cast<DType>(value.u.i));
      *entry = static_cast<TorchStack>(number);
      return number >= 0;
    }
    case TorchBaseType::kLayout:
      *entry = static_cast<TorchStack>(value.u.i);
      return value.kind == LITZ_LAYOUT;
    case TorchBaseType::kMemoryFormat:
      *entry = static_cast<TorchStack>(value.u.i);
      return value.kind == LITZ_MEMORY_FORMAT;
    case TorchBaseType::kDevice:
      return pack_device(api, value, entry);
    case TorchBaseType::kOther:
      return false;
  }
  return false;
}

void discard(const TorchApi& api, const TorchType& type, TorchStack entry) {
  if (type.optional) {
    auto* box = static_cast<TorchStack*>(pointer_of(entry));
    if (box == nullptr) return;
    TorchType inner = type;
    inner.optional = false;
    discard(api, inner, *box);
    api.delete_stable_ivalue(box);
  } else if (type.list) {
    const TorchList list = pointer_of(entry);
    size_t count = 0;
    api.list_size(list, &count);
    for (size_t i = 0; i < count; ++i) {
      TorchStack item = 0;
      if (api.list_get_item(list, i, &item) == 0) discard(api, element_of(type), item);
    }
    api.delete_list(list);
  } else if (type.base == TorchBaseType::kTensor) {
    api.delete_tensor(pointer_of(entry));
  } else if (type.base == TorchBaseType::kString) {
    api.delete_string(pointer_of(entry));
  }
}

std::string deliver_tensor(const TorchApi& api, const TorchDevice& device, TorchTensor tensor,
                           LitzValue* result) {
  bool defined = tensor != nullptr;
  if (defined && api.is_defined != nullptr) api.is_defined(tensor, &defined);
  if (!defined) {
    if (tensor != nullptr) api.delete_tensor(tensor);
    result->kind = LITZ_NONE;
    return {};
  }
  if (result->kind != LITZ_TENSOR) {
    api.delete_tensor(tensor);
    return {};
  }
  LitzTensor& target = *result->u.result;
  LitzTensor found{};
  int64_t ndim = 0;
  int32_t dtype = 0;
  int64_t* sizes = nullptr;
  int64_t* strides = nullptr;
  if (api.get_dim(tensor, &ndim) != 0 || api.get_sizes(tensor, &sizes) != 0 ||
      api.get_strides(tensor, &strides) != 0 || api.get_dtype(tensor, &dtype) != 0 ||
      api.get_data_ptr(tensor, &found.data) != 0) {
    api.delete_tensor(tensor);
    return "the op returned a tensor that is not dense";
  }
  if (target.data == nullptr) {
    target = {.data = found.data,
              .sizes = sizes,
              .strides = strides,
              .ndim = static_cast<int32_t>(ndim),
              .dtype = static_cast<LitzDType>(api.from_torch(dtype)),
              .handle = tensor};
    return {};
  }
  std::string fault;
  TorchTemporaries temporaries(api, device);
  if (target.ndim != ndim || !std::equal(sizes, sizes + ndim, target.sizes)) {
    fault = "the op returned a tensor of another size than the graph was compiled for";
  } else if (const TorchTensor out = temporaries.handle(target);
             out == nullptr || api.copy(out, tensor, 0) != 0) {
    fault = "the op's result could not be copied: " + api.last_error();
  }
  api.delete_tensor(tensor);
  return fault;
}

bool can_unpack(const TorchType& type) {
  if (type.optional || type.optional_element) return false;
  if (type.list) return type.base == TorchBaseType::kTensor;
  return type.base == TorchBaseType::kTensor || type.base == TorchBaseType::kInt ||
         type.base == TorchBaseType::kFloat || type.base == TorchBaseType::kBool;
}

std::string unpack_results(const TorchApi& api, const TorchDevice& device,
                           const std::vector<TorchType>& types, const TorchStack* stack,
                           LitzValue* results, int32_t num_results) {
  std::string fault;
  int32_t next = 0;
  const auto take_tensor = [&](TorchTensor tensor) {
    if (next < num_results && fault.empty()) {
      fault = deliver_tensor(api, device, tensor, &results[next]);
    } else {
      api.delete_tensor(tensor);
    }
    ++next;
  };
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].list) {
      const TorchList list = pointer_of(stack[i]);
      size_t count = 0;
      api.list_size(list, &count);
      for (size_t k = 0; k < count; ++k) {
        TorchStack item = 0;
        if (api.list_get_item(list, k, &item) == 0) take_tensor(pointer_of(item));
      }
      api.delete_list(list);
    } else if (types[i].base == TorchBaseType::kTensor) {
      take_tensor(pointer_of(stack[i]));
    } else {
      if (next < num_results) {
        LitzValue& result = results[next];
        if (types[i].base == TorchBaseType::kFloat) {
          result.kind = LITZ_DOUBLE;
          std::memcpy(&result.u.d, &stack[i], sizeof(result.u.d));
        } else {
          const bool is_bool = types[i].base == TorchBaseType::kBool;
          result.kind = is_bool ? LITZ_BOOL : LITZ_INT;
          result.u.i =
              is_bool ? static_cast<int64_t>(stack[i] & 0xff) : static_cast<int64_t>(stack[i]);
        }
      }
      ++next;
    }
  }
  if (fault.empty() && next != num_results) {
    fault = "the op returned " + std::to_string(next) + " results, the graph expects " +
            std::to_string(num_results);
  }
  return fault;
}

}  // namespace litz
