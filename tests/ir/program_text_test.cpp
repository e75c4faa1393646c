#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/parse_program.h"
#include "ir/print_program.h"
#include "ir/verify_program.h"
#include "support/error.h"

namespace litz {
namespace {

// One of everything, in the printer's own form.
constexpr char kEverything[] = R"(program(s0: size[2, inf], s1: size[0, 10]) {
  buffer x: f32[s0, 16] input 0
  buffer "odd name": i64[s0] input 2
  buffer w: bf16[2, 1] constant "803f00c0"
  buffer y: f32[s0, 16]
  buffer z#4: f32[s0, 16] strides [1, s0]
  buffer z#5: f32[s0]
  buffer best: i64[s0]
  buffer run: f32[s0, 16]
  buffer hist: f32[s0, 16]
  buffer mm: f32[s0, s0] extern
  buffer one: f32[1]
  buffer att: f32[s0, 2]
  buffer logs: f32[s0]
  inputs (x = tensor x, n = int s1, "odd name" = tensor "odd name")

  pointwise y[d0 < s0, d1 < 16] {  # add: model.py:12, x = "#1" \\ y
    t0 = load x[d0, d1]
    t1 = add t0, 1.5: f32
    t2 = mul t1, t1
    t3 = index 16*d0 + d1
    t4 = cast t3 to f32
    t5 = sub t2, t4
    t6 = bitcast t5 to i32
    t7 = lt t6, -3: i32
    t8 = where t7, -inf: f32, t5
    t9 = load w[floor_div(d1, 8), 0]
    t10 = cast t9 to f32
    t11 = isnan t10
    t12 = load x[d0 - 1, d1]
    t13 = masked t11, t12, nan: f32
    t14 = fma t8, t13, t10
    yield t14
  }

  pointwise z#4[d0 < s0, d1 < 16] {
    t0 = load "odd name"[d0]
    t1 = check_index t0 < s0, runtime_error
    t2 = load y[i0, d1] with (i0 < s0 = t1)
    t3 = eq t2, 0.0: f32
    t4 = check t2, t3
    yield t4
  }

  pointwise one[0 < 1] {
    yield 0.1: f32
  }

  reduction z#5[d0 < s0] over [d1 < 16] max {
    t0 = load y[d0, d1]
    yield t0
  }

  reduction best[d0 < s0] over [d1 < 16] argmin {
    t0 = load y[d0, d1]
    yield t0
  }

  scan run[d0 < s0, d1 < 16] axis 1 prod {
    t0 = load y[d0, d1]
    yield t0
  }

  scatter hist from [d0 < s0, d1 < 16] {  # scatter_add
    t0 = load y[d0, d1]
    yield t0
  } then [d0 < s0, d1 < 16] add {
    t0 = load "odd name"[d0]
    t1 = check_index t0 < s0
    t2 = load x[d0, d1]
    target [i0, d1] with (i0 < s0 = t1)
    yield t2
  }

  scatter x[d0 < 2] max {
    target [d0, 0]
    yield 0.0: f32
  }

  extern "aten::mm" "out" {  # mm: model.py:14
    schema "aten::mm(Tensor self, Tensor mat2) -> Tensor"
    node "mm_1"
    reason "because\nof \"this\""
    argument tensor x
    argument tensor x as f32[16, s0] strides [1, 16] offset 2*s0 + 1
    argument int s0
    argument double 0.1
    argument bool true
    argument string "none"
    argument none
    argument dtype f32
    argument device "cpu"
    argument layout 0
    argument memory_format 2
    argument [int 1, [none, double inf], []]
    result tensor mm
    result none
    results_are_views
    mutates x
    side_effects
  }

  attention att logsumexp logs [d0 < s0, d1 < 2] keys [d2 < 2] factors [d3 < 2] {
    t0 = load w[d3, 0]
    t1 = load w[d2, 0]
    t2 = reduced 0: f32
    t3 = mul t2, 0.5: f32
    t4 = load w[d1, 0]
    query t0 key t1 score t3 value t4
  }

  return (tensor y, none, int s0*s1, tensor mm as i32[s0] strides [1] offset 0)
}
)";

TEST(ProgramText, RoundTripIsExact) {
  const Program program = parse_program(kEverything);
  EXPECT_EQ(to_string(program), kEverything);
}

TEST(ProgramText, ParserFillsTheProgram) {
  const Program program = parse_program(kEverything);
  EXPECT_EQ(program.buffers().size(), 13u);
  EXPECT_EQ(program.inputs.size(), 3u);
  EXPECT_EQ(program.buffer(BufferId(2)).bytes.size(), 4u);
  EXPECT_EQ(program.buffer(BufferId(4)).name, "z");
  EXPECT_EQ(program.operations()[OperationId(0)].origin, "add: model.py:12, x = \"#1\" \\ y");
  const auto& kernel = std::get<ExternKernel>(program.operations()[OperationId(8)].v);
  EXPECT_EQ(kernel.reason, "because\nof \"this\"");
  EXPECT_EQ(kernel.overload, "out");
  EXPECT_TRUE(kernel.has_side_effects);
  EXPECT_FALSE(kernel.outputs[1].valid());
  EXPECT_EQ(std::get<double>(kernel.arguments[3].v), 0.1);
}

TEST(ProgramText, BuffersReadAndWritten) {
  const Program program = parse_program(kEverything);
  const auto names = [&](const std::vector<BufferId>& ids) {
    std::string text;
    for (BufferId id : ids) text += program.buffer(id).name + " ";
    return text;
  };
  const auto read = [&](uint32_t i) {
    return names(buffers_read(program.operations()[OperationId(i)]));
  };
  const auto written = [&](uint32_t i) {
    return names(buffers_written(program.operations()[OperationId(i)]));
  };
  EXPECT_EQ(read(0), "x w ");
  EXPECT_EQ(written(0), "y ");
  EXPECT_EQ(read(1), "odd name y ");
  EXPECT_EQ(read(2), "");
  EXPECT_EQ(read(6), "y odd name x ");
  EXPECT_EQ(written(6), "hist ");
  EXPECT_EQ(read(7), "");
  EXPECT_EQ(written(7), "x ");
  EXPECT_EQ(read(8), "x ");
  EXPECT_EQ(written(8), "mm x ");
  EXPECT_EQ(read(9), "w ");
  EXPECT_EQ(written(9), "att logs ");
}

TEST(ProgramText, LiteralsKeepTheirValue) {
  for (const char* literal :
       {"0.1: f32", "0.1: f64", "-0.0: f32", "1e-45: f32", "3.4028235e+38: f32", "inf: f64",
        "-inf: bf16", "nan: f32", "-nan: f64", "65504.0: f16", "1.0: bf16", "true: bool",
        "false: bool", "255: u8", "-128: i8", "-9223372036854775808: i64", "5e-324: f64"}) {
    const std::string dtype = std::string(literal).substr(std::string(literal).find(": ") + 2);
    const std::string text = "program() {\n  buffer x: " + dtype +
                             "[1]\n  inputs ()\n\n  pointwise x[0 < 1] {\n    yield " + literal +
                             "\n  }\n\n  return (tensor x)\n}\n";
    EXPECT_EQ(to_string(parse_program(text)), text);
  }
}

TEST(ProgramText, TheExampleInTheDocsIsAValidProgram) {
  std::ifstream file("../../docs/program-text.md");  // tests run in their folder
  std::ostringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t begin = text.find("```\n") + 4;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const Program program = parse_program(example);
  EXPECT_EQ(find_program_faults(program), std::vector<std::string>());
  EXPECT_EQ(to_string(program), example);
}

std::string error_of(std::string_view text) {
  try {
    parse_program(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_in_body(const std::string& body) {
  return error_of(
      "program(s0: size[0, inf]) {\n  buffer x: f32[s0]\n  pointwise x[d0 < s0] {\n    " + body +
      "\n  }\n}");
}

TEST(ProgramText, ErrorsNameTheirPlace) {
  EXPECT_EQ(error_of("graph() {}"), "1:1: expected 'program'");
  EXPECT_EQ(error_of("program() {\n  buffer x: f33[4]\n}"), "2:13: unknown dtype f33");
  EXPECT_EQ(error_of("program() {\n  buffer x: f32[4]\n  buffer x: f32[4]\n}"),
            "3:10: buffer x is declared twice");
  EXPECT_EQ(error_of("program() {\n  inputs (a = tensor x)\n}"), "2:22: unknown buffer x");
  EXPECT_EQ(error_of("program() {\n  loop\n}"),
            "2:3: expected buffer, inputs, pointwise, reduction, attention, scan, scatter, extern, "
            "return or "
            "'}'");
  EXPECT_EQ(error_of("program() {"),
            "1:12: expected buffer, inputs, pointwise, reduction, attention, scan, scatter, "
            "extern, return or "
            "'}'");
  EXPECT_EQ(error_of("program() {\n  return ()\n} more"), "3:3: text after the program");
  EXPECT_EQ(error_of("program(s0: size[3, 2]) {}"), "1:9: empty range of s0");
  EXPECT_EQ(error_of("program() {\n  buffer x: f32[1] constant \"0g\"\n}"),
            "2:29: bytes are not hexadecimal");
  EXPECT_EQ(error_of("program() {\n  buffer x: f32[1] constant \"000\"\n}"),
            "2:29: bytes are not hexadecimal");
  EXPECT_EQ(error_of("program() {\n  extern \"aten::mm {\n}"), "2:10: string without an end");
}

TEST(ProgramText, ErrorsInBodies) {
  EXPECT_EQ(error_in_body("yield t0"), "4:11: unknown value t0");
  EXPECT_EQ(error_in_body("t0 = frob t0"), "4:10: unknown operation frob");
  EXPECT_EQ(error_in_body("t0 = index d0\n    t0 = index d0"), "5:5: value t0 is defined twice");
  EXPECT_EQ(error_in_body("t0 = load x[i0] with (i1 < 3 = 1: i64)"),
            "4:27: runtime indices are positional: expected i0");
  EXPECT_EQ(error_in_body("yield 300: u8"), "4:11: not a value of u8");
  EXPECT_EQ(error_in_body("yield 1.5: i32"), "4:11: not a value of i32");
  EXPECT_NE(error_in_body("t0 = load x[d9]").find("4:17: in \"d9\""), std::string::npos);
  const std::string mixed = error_in_body("t0 = add 1.0: f32, 1: i32");
  EXPECT_EQ(mixed.substr(0, 6), "4:10: ");
  EXPECT_NE(mixed.find("operands of add are f32 and i32"), std::string::npos);
  EXPECT_EQ(error_of("program() {\n  buffer x: f32[4]\n  pointwise x[d1 < 4] {\n  }\n}"),
            "3:15: loop variables are positional: expected d0, found d1");
}

}  // namespace
}  // namespace litz
