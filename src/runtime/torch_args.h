// Arguments and results of a library op, between the artifact's form and torch's: tensor handles
// and the stack that the dispatcher takes.
#pragma once

#include <litz/artifact.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/torch_api.h"

namespace litz {

// The types of torch's schema language that the dispatcher's C interface carries.
enum class TorchBaseType : uint8_t {
  kTensor,
  kInt,
  kFloat,
  kBool,
  kString,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kOther,  // Scalar, Generator, Dict, ...: only Python carries them
};

struct TorchType {
  TorchBaseType base = TorchBaseType::kOther;
  bool optional_element = false;  // "Tensor?[]"
  bool list = false;              // "int[2]"
  bool optional = false;          // "int?", "int[]?"
};

// Parses a type as a schema writes it, for example "Tensor(a!)", "SymInt[2]?", "ScalarType?".
TorchType parse_torch_type(std::string_view text);

// Makes tensors in one block of a device's memory. For each tensor that it is given, torch asks the
// device whose memory it is; of the tensors here it is asked for one of each dtype, of which the
// others are views.
class TorchArena {
 public:
  TorchArena(const TorchApi& api, TorchDevice device) : api_(api), device_(device) {}
  ~TorchArena();
  TorchArena(const TorchArena&) = delete;
  TorchArena& operator=(const TorchArena&) = delete;

  // The block, while nothing was made in it.
  void set_block(void* data, int64_t bytes);
  bool has_block() const { return data_ != nullptr; }

  // A tensor that the caller owns, or nullptr where it does not lie in the block or torch refuses.
  TorchTensor make(const LitzTensor& tensor);

 private:
  TorchTensor whole(DType dtype);

  const TorchApi& api_;
  const TorchDevice device_;
  char* data_ = nullptr;
  int64_t bytes_ = 0;
  std::vector<std::pair<DType, TorchTensor>> whole_;  // the block as a tensor
};

// Tensors made for the length of one call: views of workspace memory.
class TorchTemporaries {
 public:
  // `device` is where the memory of tensors without a handle is, perhaps in `arena`.
  TorchTemporaries(const TorchApi& api, TorchDevice device, TorchArena* arena = nullptr)
      : api_(api), device_(device), arena_(arena) {}
  ~TorchTemporaries();
  TorchTemporaries(const TorchTemporaries&) = delete;
  TorchTemporaries& operator=(const TorchTemporaries&) = delete;

  // The tensor's own handle, or a non-owning one for its memory; nullptr where torch refuses.
  TorchTensor handle(const LitzTensor& tensor);
  // A tensor that is undefined, which ops take and return as "none"; nullptr as above.
  TorchTensor undefined();

  const TorchDevice& device() const { return device_; }

 private:
  const TorchApi& api_;
  const TorchDevice device_;
  TorchArena* const arena_;
  std::vector<TorchTensor> tensors_;
};

// True where every value of this type can go through the dispatcher of this torch.
bool can_pack(const TorchApi& api, const TorchType& type);

// Puts a value on the stack. The entry owns what it refers to: the dispatcher consumes it. False
// where the value does not have the type or torch refuses; nothing is owned then.
bool pack(const TorchApi& api, const TorchType& type, const LitzValue& value,
          TorchTemporaries& temporaries, TorchStack* entry);

// Frees an entry that no call has consumed.
void discard(const TorchApi& api, const TorchType& type, TorchStack entry);

// Gives the caller of a library op its result. Takes over `tensor`, a new reference: copies it into
// memory on `device` that the caller named, passes it on, or drops it where the caller wants none;
// an undefined tensor becomes LITZ_NONE. Returns an empty string, or why it cannot be done.
std::string deliver_tensor(const TorchApi& api, const TorchDevice& device, TorchTensor tensor,
                           LitzValue* result);

// Takes over the stack entries that an op of these return types left and delivers them, lists
// flattened. Returns an empty string, or why it cannot be done.
std::string unpack_results(const TorchApi& api, const TorchDevice& device,
                           const std::vector<TorchType>& types, const TorchStack* stack,
                           LitzValue* results, int32_t num_results);

// True where unpack_results knows the type.
bool can_unpack(const TorchType& type);

}  // namespace litz
