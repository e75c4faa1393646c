#include "ir/extern_arguments.h"

namespace litz {
namespace {

LitzValue make_value(LitzValueKind kind) {
  LitzValue value{};
  value.kind = kind;
  return value;
}

LitzValue make_integer(LitzValueKind kind, int64_t number) {
  LitzValue value = make_value(kind);
  value.u.i = number;
  return value;
}

LitzValue make_text(LitzValueKind kind, const std::string& text) {
  LitzValue value = make_value(kind);
  value.u.s = text.c_str();
  return value;
}

}  // namespace

std::vector<LitzValue> ExternArguments::build(const std::vector<ExternArgument>& arguments) {
  std::vector<LitzValue> values;
  values.reserve(arguments.size());
  for (const ExternArgument& argument : arguments) values.push_back(build_value(argument));
  return values;
}

const std::vector<int64_t>& ExternArguments::keep_numbers(const std::vector<Index>& indices) {
  std::vector<int64_t>& numbers = numbers_.emplace_back();
  for (Index index : indices) numbers.push_back(value_of_(index));
  return numbers;
}

LitzValue ExternArguments::build_tensor(const BufferView& view) {
  const std::vector<int64_t>& sizes = keep_numbers(view.sizes);
  const std::vector<int64_t>& strides = keep_numbers(view.strides);
  LitzValue value = make_value(LITZ_TENSOR);
  value.u.tensor = &tensors_.emplace_back(tensor_of_(view, sizes, strides));
  return value;
}

LitzValue ExternArguments::build_value(const ExternArgument& argument) {
  struct Visitor {
    ExternArguments& self;
    LitzValue operator()(std::monostate) { return make_value(LITZ_NONE); }
    LitzValue operator()(const BufferView& view) { return self.build_tensor(view); }
    LitzValue operator()(Index index) { return make_integer(LITZ_INT, self.value_of_(index)); }
    LitzValue operator()(double number) {
      LitzValue value = make_value(LITZ_DOUBLE);
      value.u.d = number;
      return value;
    }
    LitzValue operator()(bool flag) { return make_integer(LITZ_BOOL, flag); }
    LitzValue operator()(const std::string& text) { return make_text(LITZ_STRING, text); }
    LitzValue operator()(DType dtype) {
      return make_integer(LITZ_DTYPE, static_cast<int64_t>(dtype));
    }
    LitzValue operator()(const ExternDevice& device) {
      return make_text(LITZ_DEVICE, device.value);
    }
    LitzValue operator()(ExternLayout layout) { return make_integer(LITZ_LAYOUT, layout.value); }
    LitzValue operator()(ExternMemoryFormat format) {
      return make_integer(LITZ_MEMORY_FORMAT, format.value);
    }
    LitzValue operator()(const ExternList& list) {
      const std::vector<LitzValue>& items = self.lists_.emplace_back(self.build(list));
      LitzValue value = make_value(LITZ_LIST);
      value.count = static_cast<int32_t>(items.size());
      value.u.list = items.data();
      return value;
    }
  };
  return std::visit(Visitor{*this}, argument.v);
}

}  // namespace litz
