#include "ir/verify_program.h"

#include <gtest/gtest.h>

#include "ir/parse_program.h"
#include "support/error.h"

namespace litz {
namespace {

constexpr char kValid[] = R"(program(s0: size[2, inf]) {
  buffer x: f32[s0, 16] input 0
  buffer i: i64[s0] input 1
  buffer c: f32[2] constant "0000803f00000040"
  buffer y: f32[s0, 16]
  buffer m: f32[s0]
  buffer n: i64[s0]
  buffer r: f32[s0, 16]
  buffer h: f32[s0, 16]
  buffer e: f32[s0, s0] extern
  inputs (x = tensor x, i = tensor i)
  pointwise y[d0 < s0, d1 < 16] {
    t0 = load i[d0]
    t1 = check_index t0 < s0
    t2 = load x[i0, d1] with (i0 < s0 = t1)
    t3 = load c[floor_div(d1, 8)]
    t4 = index d0
    t5 = lt t4, 1: i64
    t6 = load x[d0 - 1, d1]
    t7 = masked t5, t6, t2
    t8 = add t3, t7
    yield t8
  }
  reduction m[d0 < s0] over [d1 < 16] sum {
    t0 = load y[d0, d1]
    yield t0
  }
  reduction n[d0 < s0] over [d1 < 16] argmax {
    t0 = load y[d0, d1]
    yield t0
  }
  scan r[d0 < s0, d1 < 16] axis 1 sum {
    t0 = load y[d0, d1]
    yield t0
  }
  scatter h from [d0 < s0, d1 < 16] {
    t0 = load y[d0, d1]
    yield t0
  } then [d0 < s0, d1 < 16] add {
    t0 = load i[d0]
    t1 = check_index t0 < s0
    target [i0, d1] with (i0 < s0 = t1)
    yield 1.0: f32
  }
  extern "aten::mm" {
    argument tensor h
    argument tensor h as f32[16, s0] strides [1, 16] offset 0
    result tensor e
    mutates h
  }
  pointwise x[d0 < s0, d1 < 16] {
    t0 = load x[d0, d1]
    yield t0
  }
  return (tensor e, tensor m, tensor x, int s0)
}
)";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text = kValid;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The faults of the program above with one change.
std::string faults_with(std::string_view from, std::string_view to) {
  std::string all;
  for (const std::string& fault : find_program_faults(parse_program(replaced(from, to)))) {
    all += (all.empty() ? "" : "\n") + fault;
  }
  return all;
}

TEST(VerifyProgram, ValidProgramHasNoFaults) {
  const Program program = parse_program(kValid);
  EXPECT_EQ(find_program_faults(program), std::vector<std::string>());
  EXPECT_NO_THROW(verify_program(program));
}

TEST(VerifyProgram, P1Name) {
  Program program = parse_program(kValid);
  program.buffer(BufferId(3)).name.clear();
  EXPECT_EQ(find_program_faults(program)[0], "P1: buffer 3: no name");
}

TEST(VerifyProgram, P2DType) {
  EXPECT_EQ(faults_with("buffer m: f32[s0]", "buffer q: c64[s0]\n  buffer m: f32[s0]"),
            "P2: buffer q: computed buffer of c64");
}

TEST(VerifyProgram, P3SizesAndStrides) {
  EXPECT_EQ(faults_with("buffer r: f32[s0, 16]", "buffer r: f32[s0, 16] strides [1]"),
            "P3: buffer r: 2 sizes, 1 strides");
  Program program = parse_program(kValid);
  IndexContext& indices = program.indices();
  program.buffer(BufferId(5)).sizes[0] = indices.variable(0, indices.constant(4));
  EXPECT_EQ(find_program_faults(program)[0],
            "P3: buffer n: size d0 depends on more than size symbols");
}

TEST(VerifyProgram, P4ConstantBytes) {
  EXPECT_EQ(faults_with("0000803f00000040", "0000803f"), "P4: buffer c: 4 bytes, expected 8");
  EXPECT_EQ(faults_with("buffer c: f32[2]", "buffer q: f32[s0] constant \"\"\n  buffer c: f32[2]"),
            "P4: buffer q: sizes and strides of a constant are not static");
}

TEST(VerifyProgram, P5Inputs) {
  EXPECT_EQ(faults_with("i = tensor i)", "i = tensor y)"),
            "P5: buffer i: input 1 is not this buffer\nP5: input 1: buffer y is not input 1");
}

TEST(VerifyProgram, P6UnknownBuffer) {
  Program program = parse_program(kValid);
  std::get<Pointwise>(program.operations()[OperationId(6)].v).output = BufferId(99);
  EXPECT_EQ(find_program_faults(program)[0], "P6: operation: buffer 99 does not exist");
}

TEST(VerifyProgram, P7PositionalVariables) {
  Program program = parse_program(kValid);
  auto& reduction = std::get<Reduction>(program.operations()[OperationId(1)].v);
  reduction.reduction = make_loops(program.indices(), reduction.reduction.extents, 5);
  EXPECT_EQ(find_program_faults(program)[0], "P7: operation: variable 1 of extent 16 is d5");
}

TEST(VerifyProgram, P8Scope) {
  Program program = parse_program(kValid);
  auto& pointwise = std::get<Pointwise>(program.operations()[OperationId(6)].v);
  IndexContext& indices = program.indices();
  const Index far = indices.variable(7, indices.constant(16));
  const Index row = pointwise.loops.variables[0];
  pointwise.value = program.exprs().load(BufferId(3), DType::kFloat32, {row, far});
  EXPECT_EQ(find_program_faults(program)[0],
            "P8: operation: d7 in d7 is no loop variable of the operation");
  const Index runtime = indices.indirect(1, indices.constant(16));
  pointwise.value = program.exprs().load(BufferId(3), DType::kFloat32, {row, runtime});
  EXPECT_EQ(find_program_faults(program)[0], "P8: operation: i1 in i1 has no operand");
}

TEST(VerifyProgram, P9Loads) {
  EXPECT_EQ(faults_with("load c[floor_div(d1, 8)]", "load c[0, 0]"),
            "P9: operation: 2 coordinates for buffer c of 1 dimensions");
  Program program = parse_program(kValid);
  auto& pointwise = std::get<Pointwise>(program.operations()[OperationId(6)].v);
  pointwise.value = program.exprs().cast(
      program.exprs().load(BufferId(5), DType::kInt32, {pointwise.loops.variables[0]}),
      DType::kFloat32);
  EXPECT_EQ(find_program_faults(program)[0], "P9: operation: load of i32 from buffer n of i64");
}

TEST(VerifyProgram, P10Coordinates) {
  EXPECT_EQ(faults_with("load c[floor_div(d1, 8)]", "load c[floor_div(d1, 8) + 2]"),
            "P10: operation: coordinate floor_div(d1, 8) + 2 in dimension 0 of buffer c, which has "
            "size 2, is out of range");
  EXPECT_EQ(faults_with("load c[floor_div(d1, 8)]", "load c[-1]").substr(0, 27),
            "P10: operation: coordinate ");
  EXPECT_EQ(faults_with("load x[d0 - 1, d1]", "load x[-1, d1]"), "");  // under kMasked
  EXPECT_EQ(
      faults_with("load x[i0, d1] with (i0 < s0 = t1)", "load x[i0, d1] with (i0 < s0 + 1 = t1)"),
      "P10: operation: coordinate i0 in dimension 0 of buffer x, which has size s0, stands "
      "for values below s0 + 1");
}

TEST(VerifyProgram, P11Reduced) {
  EXPECT_EQ(faults_with("t3 = load c[floor_div(d1, 8)]", "t3 = reduced 0: f32"),
            "P11: operation: reduced 0");
}

TEST(VerifyProgram, P12WrittenOnce) {
  EXPECT_EQ(faults_with("scan r[", "scan y["), "P12: operation: buffer y is written twice");
  EXPECT_EQ(faults_with("result tensor e", "result tensor r"),
            "P12: operation: buffer r is not a library result\n"
            "P20: outputs: buffer e is never written");
  EXPECT_EQ(faults_with("mutates h", "argument tensor c\n    mutates c"),
            "P12: operation: constant c is written");
}

TEST(VerifyProgram, P13Order) {
  EXPECT_EQ(faults_with("t3 = load c[floor_div(d1, 8)]", "t3 = load m[d0]"),
            "P13: operation: buffer m is read before it is written");
  EXPECT_EQ(faults_with("  return", R"(  extern "aten::sum" {
    argument tensor x
  }
  return)"),
            "P13: operation: buffer x is read after it was overwritten");
}

TEST(VerifyProgram, P14InPlace) {
  EXPECT_EQ(faults_with("t0 = load x[d0, d1]\n    yield t0",
                        "t0 = load x[s0 - 1 - d0, d1]\n    yield t0"),
            "P14: operation: input x is loaded at another element than is written");
}

TEST(VerifyProgram, P15Output) {
  EXPECT_EQ(faults_with("scan r[d0 < s0, d1 < 16]", "scan r[d0 < s0, d1 < 8]"),
            "P15: operation: loops do not have the sizes of buffer r");
  EXPECT_EQ(faults_with("over [d1 < 16] argmax", "over [d1 < 16] max"),
            "P15: operation: value of f32 for buffer n of i64");
}

constexpr char kAttention[] = R"(program() {
  buffer q: f16[4, 2] input 0
  buffer k: f16[3, 2] input 1
  buffer y: f32[4, 2]
  buffer l: f32[4]
  buffer wide: f32[4, 2]
  inputs (q = tensor q, k = tensor k)
  attention y[d0 < 4, d1 < 2] keys [d2 < 3] factors [d3 < 2] {
    t0 = load q[d0, d3]
    t1 = load k[d2, d3]
    t2 = reduced 0: f32
    t3 = load k[d2, d1]
    query t0 key t1 score t2 value t3
  }
  return (tensor y)
})";

std::string attention_faults_with(const std::string& from, const std::string& to) {
  std::string text = kAttention;
  text.replace(text.find(from), from.size(), to);
  std::string faults;
  for (const std::string& fault : find_program_faults(parse_program(text)))
    faults += (faults.empty() ? "" : "\n") + fault;
  return faults;
}

TEST(VerifyProgram, P21Attention) {
  EXPECT_EQ(attention_faults_with("t0", "t0"), "");
  EXPECT_EQ(attention_faults_with("load q[d0, d3]", "load q[d2, d3]"),
            "P21: operation: an operand depends on d2");
  EXPECT_EQ(attention_faults_with("t1 = load k[d2, d3]", "t1 = add 1.0: f32, 2.0: f32"),
            "P21: operation: an operand that is no load of a float32 or a half float");
  EXPECT_EQ(attention_faults_with("score t2", "score t3"),
            "P21: operation: the score is not float32\n"
            "P21: operation: an operand depends on d1\n"
            "P15: operation: value of f16 for buffer y of f32");
  EXPECT_EQ(attention_faults_with("reduced 0", "reduced 1"), "P11: operation: reduced 1");
  EXPECT_EQ(attention_faults_with("attention y[", "attention y logsumexp l ["), "");
  EXPECT_EQ(attention_faults_with("attention y[", "attention y logsumexp wide ["),
            "P15: operation: loops do not have the sizes of buffer wide");
  EXPECT_EQ(attention_faults_with("q: f16[4, 2]", "q: i32[4, 2]"),
            "P21: operation: an operand that is no load of a float32 or a half float");
  Program program = parse_program(kAttention);
  std::get<Attention>(program.operations()[OperationId(0)].v).factors = {};
  EXPECT_EQ(find_program_faults(program).front(),
            "P21: operation: not the loops of a query, a feature, keys and factors");
}

TEST(VerifyProgram, P16Reductions) {
  EXPECT_EQ(faults_with("over [d1 < 16] sum", "over [d1 < 16] any"), "P16: operation: any of f32");
  EXPECT_EQ(faults_with("axis 1 sum", "axis 2 sum"), "P16: operation: axis 2 of 2 loops");
}

TEST(VerifyProgram, P17Scatter) {
  EXPECT_EQ(faults_with("from [d0 < s0, d1 < 16]", "from [d0 < s0, d1 < 8]"),
            "P15: operation: loops do not have the sizes of buffer h");
  EXPECT_EQ(faults_with(
                "from [d0 < s0, d1 < 16] {\n    t0 = load y[d0, d1]\n    yield t0\n  } then ", ""),
            "P17: operation: buffer h is not an input and has no initial value");
  EXPECT_EQ(
      faults_with("target [i0, d1] with (i0 < s0 = t1)\n    yield 1.0: f32",
                  "t7 = load h[d0, d1]\n    target [i0, d1] with (i0 < s0 = t1)\n    yield t7"),
      "P13: operation: buffer h is read before it is written\n"
      "P17: operation: the scatter loads buffer h, which it writes");
}

TEST(VerifyProgram, P18Views) {
  EXPECT_EQ(faults_with("strides [1, 16] offset 0", "strides [1] offset 0"),
            "P18: operation: view of buffer h is incomplete");
}

TEST(VerifyProgram, P19Mutation) {
  EXPECT_EQ(faults_with("mutates h", "mutates m"),
            "P19: operation: buffer m is mutated but not an argument");
}

TEST(VerifyProgram, P20Outputs) {
  EXPECT_EQ(faults_with("buffer r:", "buffer q: f32[1]\n  buffer r:"), "");
  EXPECT_EQ(faults_with("result tensor e", "result none"),
            "P20: outputs: buffer e is never written");
}

TEST(VerifyProgram, ThrowsWithAllFaults) {
  const Program program = parse_program(replaced("axis 1 sum", "axis 2 sum"));
  try {
    verify_program(program);
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "invalid program:\n  P16: operation: axis 2 of 2 loops");
  }
}

}  // namespace
}  // namespace litz
