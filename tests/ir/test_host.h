// A LitzHost for tests: tensors on the heap, library ops given as functions, everything counted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/interpret_program.h"
#include "litz/artifact.h"
#include "support/dtype.h"

namespace litz {

// A tensor with memory of its own, or a view.
struct TestTensor {
  std::shared_ptr<std::vector<std::byte>> memory;  // of a view, its base's
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  LitzTensor tensor{};
};

class TestHost {
 public:
  using Library = std::function<int(int32_t op, const LitzValue* args, int32_t num_args,
                                    LitzValue* results, int32_t num_results)>;

  TestHost();

  // Tensors handed out and not released.
  size_t live() const { return tensors_.size(); }
  // A new tensor, as a library op would return it.
  LitzTensor make(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides);

  LitzHost host{};
  Library library;
  bool fail_allocations = false;
  int views = 0;
  int status = LITZ_OK;
  std::string message;

 private:
  int allocate(LitzTensor* tensor);
  int view(const LitzTensor& base, LitzTensor* tensor);
  void release(LitzTensor* tensor);

  std::list<TestTensor> tensors_;
};

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes);

// Runs a program given as text. Outputs are read as rows of T in logical order.
class TestRun {
 public:
  explicit TestRun(std::string_view program_text);

  // Adds the next input.
  template <class T>
  TestRun& input(DType dtype, std::vector<int64_t> sizes, std::vector<T> values) {
    std::vector<int64_t> strides = row_major(sizes);
    return strided_input(dtype, std::move(sizes), std::move(strides), std::move(values));
  }
  template <class T>
  TestRun& strided_input(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                         std::vector<T> values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      const T value = values[i];
      std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(T),
                  bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(T)));
    }
    return add_input(dtype, std::move(sizes), std::move(strides), std::move(bytes));
  }
  TestRun& integer(int64_t value);

  int run();

  const LitzTensor& tensor(size_t output) const { return output_tensors_[output]; }
  const LitzValue& value(size_t output) const { return outputs_[output]; }

  template <class T>
  std::vector<T> read(const LitzTensor& tensor) const {
    std::vector<T> values;
    for (int64_t offset : offsets(tensor)) {
      values.push_back(static_cast<const T*>(tensor.data)[offset]);
    }
    return values;
  }
  template <class T>
  std::vector<T> output(size_t number = 0) const {
    return read<T>(output_tensors_[number]);
  }
  template <class T>
  std::vector<T> input_values(size_t number) const {
    return read<T>(*inputs_[number].u.tensor);
  }

  TestHost host;
  ProgramInterpreter interpreter;

 private:
  TestRun& add_input(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                     std::vector<std::byte> bytes);
  static std::vector<int64_t> offsets(const LitzTensor& tensor);

  std::list<TestTensor> tensors_;
  std::vector<LitzValue> inputs_;
  std::vector<LitzValue> outputs_;
  std::vector<LitzTensor> output_tensors_;
  std::vector<int64_t> shapes_;
};

}  // namespace litz
