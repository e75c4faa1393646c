// Runs the graphs of cases/*.txt through the lowering and the interpreter, and compares the results
// with what eager gave. generate_cases.py writes the files and says what is in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "../ir/test_host.h"
#include "case_file.h"
#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "lowering/lowering.h"
#include "support/half.h"

namespace litz {
namespace {

// Where elements overlap in eager's result, Litz has memory for each.
void check_strides(const LitzTensor& tensor, const std::vector<int64_t>& expected) {
  const int64_t* sizes = tensor.sizes;
  const bool is_empty = std::find(sizes, sizes + tensor.ndim, 0) != sizes + tensor.ndim;
  if (is_empty || std::find(expected.begin(), expected.end(), 0) != expected.end()) return;
  EXPECT_EQ(std::vector<int64_t>(tensor.strides, tensor.strides + tensor.ndim), expected);
}

double read_number(DType dtype, const uint8_t* bytes) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kFloat16:
      return float16_to_float(as(uint16_t{}));
    case DType::kBFloat16:
      return bfloat16_to_float(as(uint16_t{}));
    case DType::kFloat32:
      return as(float{});
    default:
      return as(double{});
  }
}

// The error that functions such as exp may have, in eager and here.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat32:
      return 3e-6;
    default:
      return 1e-12;
  }
}

bool agrees(DType dtype, const uint8_t* actual, const uint8_t* expected, bool is_exact) {
  if (std::memcmp(actual, expected, static_cast<size_t>(size_of(dtype))) == 0) return true;
  if (!is_floating(dtype)) return false;
  const double a = read_number(dtype, actual);
  const double b = read_number(dtype, expected);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (is_exact || std::isinf(a) || std::isinf(b)) return !is_exact && a == b;
  return std::abs(a - b) <= tolerance(dtype) * std::max(1.0, std::abs(b));
}

std::vector<uint8_t> read_bytes(const TestRun& run, DType dtype, size_t output) {
  const auto flatten = [](const auto& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(values[0]));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  switch (size_of(dtype)) {
    case 1:
      return run.output<uint8_t>(output);
    case 2:
      return flatten(run.output<uint16_t>(output));
    case 4:
      return flatten(run.output<uint32_t>(output));
    default:
      return flatten(run.output<uint64_t>(output));
  }
}

void check_result(const TestRun& run, const Graph& graph, size_t output,
                  const ExpectedResult& expected) {
  const LitzTensor& tensor = run.tensor(output);
  const DType dtype = static_cast<DType>(tensor.dtype);
  const Value value = std::get<Value>(graph.outputs()[output].v);
  SCOPED_TRACE("result " + std::to_string(output) + ": " + to_string(graph, value.node));
  ASSERT_EQ(std::string(to_string(dtype)), expected.dtype);
  ASSERT_EQ(std::vector<int64_t>(tensor.sizes, tensor.sizes + tensor.ndim), expected.sizes);
  check_strides(tensor, expected.strides);
  const std::vector<uint8_t> actual = read_bytes(run, dtype, output);
  ASSERT_EQ(actual.size(), expected.bytes.size());
  const size_t step = static_cast<size_t>(size_of(dtype));
  for (size_t i = 0; i < actual.size(); i += step) {
    if (agrees(dtype, &actual[i], &expected.bytes[i], expected.is_exact)) continue;
    std::ostringstream message;
    message.precision(17);
    message << "element " << i / step << " is ";
    if (is_floating(dtype)) {
      message << read_number(dtype, &actual[i]) << ", eager gives "
              << read_number(dtype, &expected.bytes[i]);
    } else {
      message << "wrong: byte " << int{actual[i]} << ", eager gives " << int{expected.bytes[i]};
    }
    ADD_FAILURE() << message.str();
    return;
  }
}

// The library call that draws a graph's seeds, with those of generate_random_cases.py.
int draw_seeds(TestHost& host, const LitzValue* args, LitzValue* results) {
  const int64_t count = args[2].u.list[0].u.i;
  LitzTensor seeds = host.make(DType::kInt64, {count}, {1});
  for (int64_t i = 0; i < count; ++i) static_cast<int64_t*>(seeds.data)[i] = 0x0123456789ABCDEF + i;
  *results[0].u.result = seeds;
  return LITZ_OK;
}

void run_case(const LoweringCase& test) {
  const Graph graph = parse_graph(test.graph);
  verify_graph(graph);
  const LoweringResult lowered = lower_graph(graph, {});
  verify_program(lowered.program);
  std::string reasons;
  for (const LoweringNote& note : lowered.fallbacks) reasons += note.op + ": " + note.reason + "; ";
  ASSERT_EQ(!lowered.fallbacks.empty(), test.uses_library) << reasons;
  if (test.uses_library) return;
  const std::string text = to_string(lowered.program);
  TestRun run(text);
  run.host.library = [&](int32_t, const LitzValue* args, int32_t, LitzValue* results, int32_t) {
    return draw_seeds(run.host, args, results);
  };
  ASSERT_EQ(run.run(), LITZ_OK) << run.host.message << "\n" << text;
  for (size_t i = 0; i < test.results.size(); ++i) check_result(run, graph, i, test.results[i]);
}

class LoweringCases : public testing::TestWithParam<std::string> {};

TEST_P(LoweringCases, AgreeWithEager) {
  const std::vector<LoweringCase> cases = read_cases(std::filesystem::path("cases") / GetParam());
  ASSERT_FALSE(cases.empty());
  for (const LoweringCase& test : cases) {
    SCOPED_TRACE(test.name);
    try {
      run_case(test);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, LoweringCases,
                         testing::Values("pointwise.txt", "views.txt", "creation.txt",
                                         "activations.txt", "joins.txt", "reductions.txt",
                                         "normalizations.txt", "losses.txt", "indexing.txt",
                                         "pools.txt", "random.txt"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

}  // namespace
}  // namespace litz
