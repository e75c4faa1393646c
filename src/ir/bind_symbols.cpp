#include "ir/bind_symbols.h"

#include <unordered_map>

#include "ir/scalar_semantics.h"
#include "support/error.h"

namespace litz {
namespace {

struct Candidate {
  InputNumber number;
  Index expected;
};

// Every number of the inputs, the preferred sources first.
std::vector<Candidate> list_numbers(const Program& program) {
  std::vector<Candidate> numbers;
  std::vector<Candidate> strides;
  for (uint32_t k = 0; k < program.inputs.size(); ++k) {
    const Program::Input& input = program.inputs[k];
    if (!input.buffer.valid()) {
      numbers.push_back({{InputNumber::Kind::kInt, k, 0}, input.integer});
      continue;
    }
    const Buffer& buffer = program.buffer(input.buffer);
    for (uint32_t d = 0; d < buffer.sizes.size(); ++d) {
      numbers.push_back({{InputNumber::Kind::kSize, k, d}, buffer.sizes[d]});
      strides.push_back({{InputNumber::Kind::kStride, k, d}, buffer.strides[d]});
    }
  }
  numbers.insert(numbers.end(), strides.begin(), strides.end());
  return numbers;
}

// The source that solves expected == number for its only symbol, if it is linear in it.
std::optional<SymbolSource> solve(const Candidate& candidate) {
  const Index expected = candidate.expected;
  if (expected.is_symbol()) return SymbolSource{expected, candidate.number, 1, 0};
  if (expected.kind() != IndexKind::kSum || expected.terms().size() != 1) return std::nullopt;
  const auto& [factor, term] = expected.terms()[0];
  if (!term.is_symbol()) return std::nullopt;
  return SymbolSource{term, candidate.number, factor, expected.sum_constant()};
}

int64_t read_number(const LitzValue* inputs, const InputNumber& number) {
  const LitzValue& value = inputs[number.input];
  switch (number.kind) {
    case InputNumber::Kind::kSize:
      return value.u.tensor->sizes[number.dimension];
    case InputNumber::Kind::kStride:
      return value.u.tensor->strides[number.dimension];
    case InputNumber::Kind::kInt:
      return value.u.i;
  }
  throw_internal("kind is one of three", __FILE__, __LINE__, "number of an input");
}

[[noreturn]] void fail(const Program& program, uint32_t input, const std::string& message) {
  throw UserError("input " + std::to_string(input) + " (" + program.inputs[input].name +
                  "): " + message);
}

void check_kinds(const Program& program, const LitzValue* inputs) {
  for (uint32_t k = 0; k < program.inputs.size(); ++k) {
    const BufferId id = program.inputs[k].buffer;
    if (!id.valid()) {
      if (inputs[k].kind != LITZ_INT) fail(program, k, "expected an int");
      continue;
    }
    if (inputs[k].kind != LITZ_TENSOR) fail(program, k, "expected a tensor");
    const Buffer& buffer = program.buffer(id);
    const LitzTensor& tensor = *inputs[k].u.tensor;
    if (tensor.dtype != static_cast<LitzDType>(buffer.dtype)) {
      fail(program, k,
           "expected dtype " + std::string(torch_name(buffer.dtype)) + ", got number " +
               std::to_string(tensor.dtype));
    }
    if (tensor.ndim != static_cast<int32_t>(buffer.sizes.size())) {
      fail(program, k,
           "expected " + std::to_string(buffer.sizes.size()) + " dimensions, got " +
               std::to_string(tensor.ndim));
    }
  }
}

// Strides that no loop walks may have any value.
bool matters(const LitzValue* inputs, const InputNumber& number) {
  if (number.kind != InputNumber::Kind::kStride) return true;
  const LitzTensor& tensor = *inputs[number.input].u.tensor;
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.sizes[d] == 0) return false;
  }
  return tensor.sizes[number.dimension] != 1;
}

}  // namespace

std::string describe(const Program& program, const InputNumber& number) {
  const std::string& name = program.inputs[number.input].name;
  switch (number.kind) {
    case InputNumber::Kind::kSize:
      return "size " + std::to_string(number.dimension) + " of input " + name;
    case InputNumber::Kind::kStride:
      return "stride " + std::to_string(number.dimension) + " of input " + name;
    case InputNumber::Kind::kInt:
      return "input " + name;
  }
  throw_internal("kind is one of three", __FILE__, __LINE__, "number of an input");
}

SymbolBinding bind_symbols(const Program& program) {
  SymbolBinding binding;
  std::unordered_map<Index, SymbolSource> found;
  for (const Candidate& candidate : list_numbers(program)) {
    const std::optional<SymbolSource> source = solve(candidate);
    const bool is_source = source && found.emplace(source->symbol, *source).second;
    const bool bare = is_source && candidate.expected.is_symbol();
    if (!bare) binding.checks.push_back({candidate.number, candidate.expected});
  }
  std::string missing;
  for (Index symbol : size_symbols(program)) {
    const auto source = found.find(symbol);
    if (source != found.end()) {
      binding.sources.push_back(source->second);
    } else {
      missing += (missing.empty() ? "" : ", ") + std::string(symbol.symbol_name());
    }
  }
  LITZ_CHECK(missing.empty(), "no input determines the size symbols " + missing);
  return binding;
}

std::vector<int64_t> read_symbols(const Program& program, const SymbolBinding& binding,
                                  const LitzValue* inputs) {
  check_kinds(program, inputs);
  std::vector<int64_t> values;
  std::unordered_map<Index, int64_t> by_symbol;
  for (const SymbolSource& source : binding.sources) {
    // Wraps where an int argument is extreme; the source's check then fails.
    const int64_t value = semantics::trunc_div(
        semantics::sub(read_number(inputs, source.number), source.offset), source.factor);
    const ValueRange range = source.symbol.range();
    if (value < range.lo || value > range.hi) {
      throw UserError(describe(program, source.number) + ": " +
                      std::string(source.symbol.symbol_name()) + " = " + std::to_string(value) +
                      " is outside the range the program was compiled for");
    }
    values.push_back(value);
    by_symbol.emplace(source.symbol, value);
  }
  for (const InputCheck& check : binding.checks) {
    if (!matters(inputs, check.number)) continue;
    const int64_t expected =
        evaluate(check.expected, [&](Index symbol) { return by_symbol.at(symbol); });
    const int64_t actual = read_number(inputs, check.number);
    if (actual != expected) {
      throw UserError(describe(program, check.number) + " is " + std::to_string(actual) +
                      ", expected " + std::to_string(expected) + " (" + to_string(check.expected) +
                      ")");
    }
  }
  return values;
}

}  // namespace litz
