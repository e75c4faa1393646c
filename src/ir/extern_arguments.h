// The arguments of one library op as the C structs that LitzHost::call takes.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "ir/program.h"
#include "litz/artifact.h"

namespace litz {

// Owns everything the values point to, except memory, handles and strings: those belong to the
// tensors that `tensor_of` returns and to the program.
class ExternArguments {
 public:
  using ValueOf = std::function<int64_t(Index)>;
  using TensorOf =
      std::function<LitzTensor(const BufferView& view, const std::vector<int64_t>& sizes,
                               const std::vector<int64_t>& strides)>;

  ExternArguments(ValueOf value_of, TensorOf tensor_of)
      : value_of_(std::move(value_of)), tensor_of_(std::move(tensor_of)) {}

  std::vector<LitzValue> build(const std::vector<ExternArgument>& arguments);

 private:
  LitzValue build_value(const ExternArgument& argument);
  LitzValue build_tensor(const BufferView& view);
  const std::vector<int64_t>& keep_numbers(const std::vector<Index>& indices);

  ValueOf value_of_;
  TensorOf tensor_of_;
  // Deques: their items stay where they are.
  std::deque<LitzTensor> tensors_;
  std::deque<std::vector<int64_t>> numbers_;
  std::deque<std::vector<LitzValue>> lists_;
};

}  // namespace litz
