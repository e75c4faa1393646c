#include "test_host.h"

#include "ir/parse_program.h"
#include "ir/verify_program.h"
#include "runtime/host_table.h"

namespace litz {
namespace {

TestHost& self_of(void* self) { return *static_cast<TestHost*>(self); }

int64_t span_bytes(const LitzTensor& tensor) {
  int64_t span = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.sizes[d] == 0) return 0;
    span += (tensor.sizes[d] - 1) * tensor.strides[d];
  }
  return span * size_of(static_cast<DType>(tensor.dtype));
}

std::shared_ptr<std::vector<std::byte>> new_memory(const LitzTensor& tensor) {
  return std::make_shared<std::vector<std::byte>>(static_cast<size_t>(span_bytes(tensor)),
                                                  std::byte{0xcd});
}

}  // namespace

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

TestHost::TestHost() {
  host.abi_version = LITZ_ABI_VERSION;
  host.size_bytes = sizeof(LitzHost);
  host.self = this;
  host.allocate = [](void* self, LitzTensor* tensor) { return self_of(self).allocate(tensor); };
  host.release = [](void* self, LitzTensor* tensor) { self_of(self).release(tensor); };
  host.view = [](void* self, const LitzTensor* base, LitzTensor* view) {
    return self_of(self).view(*base, view);
  };
  host.call = [](void* self, int32_t op, const LitzValue* args, int32_t num_args,
                 LitzValue* results, int32_t num_results) {
    return self_of(self).library(op, args, num_args, results, num_results);
  };
  host.parallel_for = [](void*, int64_t begin, int64_t end, int64_t, LitzRangeBody body,
                         void* state) { body(begin, end, state); };
  host.num_threads = [](void*) { return 1; };
  host.copy = [](void*, const LitzTensor* from, LitzTensor* to) {
    copy_elements(*from, *to);
    return static_cast<int>(LITZ_OK);
  };
  host.fail = [](void* self, int status, const char* message) {
    self_of(self).status = status;
    self_of(self).message = message;
  };
}

LitzTensor TestHost::make(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  TestTensor& made = tensors_.emplace_back();
  made.sizes = std::move(sizes);
  made.strides = std::move(strides);
  made.tensor.sizes = made.sizes.data();
  made.tensor.strides = made.strides.data();
  made.tensor.ndim = static_cast<int32_t>(made.sizes.size());
  made.tensor.dtype = static_cast<LitzDType>(dtype);
  made.memory = new_memory(made.tensor);
  made.tensor.data = made.memory->data();
  made.tensor.handle = &made;
  return made.tensor;
}

int TestHost::allocate(LitzTensor* tensor) {
  if (fail_allocations) {
    host.fail(this, LITZ_OUT_OF_MEMORY, "no memory");
    return LITZ_OUT_OF_MEMORY;
  }
  TestTensor& made = tensors_.emplace_back();
  made.memory = new_memory(*tensor);
  tensor->data = made.memory->data();
  tensor->handle = &made;
  return LITZ_OK;
}

int TestHost::view(const LitzTensor& base, LitzTensor* tensor) {
  ++views;
  TestTensor& made = tensors_.emplace_back();
  if (base.handle != nullptr) made.memory = static_cast<const TestTensor*>(base.handle)->memory;
  tensor->handle = &made;
  return LITZ_OK;
}

void TestHost::release(LitzTensor* tensor) {
  tensors_.remove_if([&](const TestTensor& made) { return &made == tensor->handle; });
}

TestRun::TestRun(std::string_view program_text) : interpreter(parse_program(program_text)) {
  verify_program(interpreter.program());
}

TestRun& TestRun::add_input(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                            std::vector<std::byte> bytes) {
  TestTensor& made = tensors_.emplace_back();
  made.memory = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  made.sizes = std::move(sizes);
  made.strides = std::move(strides);
  made.tensor = {made.memory->data(),           made.sizes.data(),
                 made.strides.data(),           static_cast<int32_t>(made.sizes.size()),
                 static_cast<LitzDType>(dtype), &made};
  LitzValue value{};
  value.kind = LITZ_TENSOR;
  value.u.tensor = &made.tensor;
  inputs_.push_back(value);
  return *this;
}

TestRun& TestRun::integer(int64_t number) {
  LitzValue value{};
  value.kind = LITZ_INT;
  value.u.i = number;
  inputs_.push_back(value);
  return *this;
}

int TestRun::run() {
  const size_t count = interpreter.program().outputs.size();
  outputs_.assign(count, {});
  output_tensors_.assign(count, {});
  shapes_.assign(static_cast<size_t>(interpreter.shapes_count()), 0);
  return interpreter.run(&host.host, inputs_.data(), outputs_.data(), output_tensors_.data(),
                         shapes_.data());
}

std::vector<int64_t> TestRun::offsets(const LitzTensor& tensor) {
  std::vector<int64_t> found = {0};
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    std::vector<int64_t> next;
    for (int64_t offset : found) {
      for (int64_t i = 0; i < tensor.sizes[d]; ++i) next.push_back(offset + i * tensor.strides[d]);
    }
    found = std::move(next);
  }
  return found;
}

}  // namespace litz
