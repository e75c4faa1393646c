#include "graph/bind_arguments.h"

#include "support/error.h"

namespace litz {
namespace {

// A known integer, whatever it came as.
const int64_t* integer_of(const Argument& argument) { return std::get_if<int64_t>(&argument.v); }

bool fit_scalar(SchemaType type, Argument& argument) {
  if (const Index* index = std::get_if<Index>(&argument.v)) {
    if (!index->valid()) return false;
    if (index->is_constant()) argument = index->constant();
  }
  if (const bool* flag = std::get_if<bool>(&argument.v); flag && type != SchemaType::kBool &&
                                                         type != SchemaType::kScalar &&
                                                         type != SchemaType::kTensor)
    argument = static_cast<int64_t>(*flag);
  const bool is_value = argument.is_value();
  const bool is_index = argument.holds<Index>();
  const int64_t* integer = integer_of(argument);
  switch (type) {
    case SchemaType::kInt:
    case SchemaType::kSymInt:
      return integer || is_index || is_value;
    case SchemaType::kFloat:
      if (integer) argument = static_cast<double>(*integer);
      return argument.holds<double>() || is_index || is_value;
    case SchemaType::kBool:
      if (integer) argument = *integer != 0;
      return argument.holds<bool>() || is_value;
    case SchemaType::kComplex:
      if (integer) argument = static_cast<double>(*integer);
      if (argument.holds<double>()) argument = std::complex<double>(argument.get<double>());
      return argument.holds<std::complex<double>>() || is_value;
    case SchemaType::kTensor:
    case SchemaType::kScalar:
      return integer || argument.holds<double>() || argument.holds<bool>() ||
             argument.holds<std::complex<double>>() || is_index || is_value;
    case SchemaType::kString:
      return argument.holds<std::string>();
    case SchemaType::kScalarType:
      return argument.holds<DType>();
    case SchemaType::kDevice:
      if (argument.holds<std::string>()) argument = DeviceArg{argument.get<std::string>()};
      return argument.holds<DeviceArg>();
    case SchemaType::kLayout:
      return argument.holds<LayoutArg>() && layout_name(argument.get<LayoutArg>()) != "?";
    case SchemaType::kMemoryFormat:
      return argument.holds<MemoryFormatArg>() &&
             memory_format_name(argument.get<MemoryFormatArg>()) != "?";
    case SchemaType::kGenerator:
    case SchemaType::kOther:
      return false;
  }
  return false;
}

[[noreturn]] void fail(const OpSchema& schema, const std::string& problem) {
  throw UserError(problem + " in a call of " + to_string(schema));
}

}  // namespace

bool fit_argument(const SchemaArgument& schema, Argument& argument) {
  // PyTorch takes None for any tensor: an undefined one, as backward ops get for what there is none
  // of.
  if (argument.is_none())
    return schema.is_optional || (schema.base == SchemaType::kTensor && !schema.is_list);
  if (!schema.is_list) return fit_scalar(schema.base, argument);
  if (!argument.is_list()) {
    if (schema.base == SchemaType::kTensor || !fit_scalar(schema.base, argument)) return false;
    argument = ArgumentList(schema.list_size > 0 ? schema.list_size : 1, argument);
    return true;
  }
  for (Argument& item : std::get<ArgumentList>(argument.v)) {
    const bool fits = item.is_none() ? schema.is_element_optional : fit_scalar(schema.base, item);
    if (!fits) return false;
  }
  return true;
}

std::vector<Argument> bind_arguments(const OpSchema& schema, std::vector<Argument> positional,
                                     std::vector<std::pair<std::string, Argument>> keywords) {
  const size_t count = schema.arguments.size();
  if (positional.size() > count)
    fail(schema,
         std::to_string(positional.size()) + " arguments instead of " + std::to_string(count));
  std::vector<bool> given(count, false);
  for (size_t i = 0; i < positional.size(); ++i) given[i] = true;
  std::vector<Argument> result = std::move(positional);
  result.resize(count);
  for (auto& [name, argument] : keywords) {
    const int position = schema.find(name);
    if (position < 0) fail(schema, "unknown argument '" + name + "'");
    if (given[position]) fail(schema, "argument '" + name + "' given twice");
    given[position] = true;
    result[position] = std::move(argument);
  }
  for (size_t i = 0; i < count; ++i) {
    const SchemaArgument& argument = schema.arguments[i];
    if (!given[i]) {
      if (!argument.has_default) fail(schema, "missing argument '" + argument.name + "'");
      result[i] = argument.default_value;
    } else if (!fit_argument(argument, result[i])) {
      fail(schema, "argument '" + argument.name + "' is not of type " + argument.type);
    }
  }
  return result;
}

}  // namespace litz
