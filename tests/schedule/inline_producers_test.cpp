#include "schedule/inline_producers.h"

#include <gtest/gtest.h>

#include "ir/parse_program.h"
#include "plan_of.h"

namespace litz {
namespace {

using Steps = std::vector<std::string>;

// Without fusion, so that what shares a kernel was inlined.
ScheduleOptions inlining_alone() {
  ScheduleOptions options;
  options.fuse = false;
  return options;
}

Steps steps_of(const std::string& buffers, const std::string& operations,
               const std::string& results) {
  return written_by_step(plan_of(program_text(buffers, operations, results), inlining_alone()));
}

TEST(InlineProducers, TrivialValuesAreComputedWhereverTheyAreRead) {
  const std::string buffers = "x: f32[64] input; p y z: f32[64]";
  const std::string positions =
      "  pointwise p[d0 < 64] {\n    t0 = index d0\n    t1 = cast t0 to f32\n    yield t1\n  }\n";
  EXPECT_EQ(steps_of(buffers,
                     positions + binary("y", "d0 < 64", "add", "x[d0]", "p[d0]") +
                         binary("z", "d0 < 64", "mul", "x[d0]", "p[d0]"),
                     "y z"),
            (Steps{"y", "z"}));
}

TEST(InlineProducers, CastsAreCopiedToTheirReaders) {
  const std::string buffers = "x: f32[64] input; c y z: f64[64]";
  const std::string cast =
      "  pointwise c[d0 < 64] {\n    t0 = load x[d0]\n    t1 = cast t0 to f64\n    yield t1\n  }\n";
  EXPECT_EQ(steps_of(buffers,
                     cast + unary("y", "d0 < 64", "exp", "c[d0]") +
                         unary("z", "d0 < 64", "sin", "c[-d0 + 63]"),
                     "y z"),
            (Steps{"y", "z"}));
}

TEST(InlineProducers, WorkIsNotDoneTwice) {
  const std::string buffers = "x: f32[8, 8] input; a y z: f32[8, 8]";
  const std::string loops = "d0 < 8, d1 < 8";
  const std::string producer = unary("a", loops, "exp", "x[d0, d1]");
  EXPECT_EQ(steps_of(buffers, producer + unary("y", loops, "sin", "a[d1, d0]"), "y"), Steps{"y"})
      << "one reader, however it walks";
  EXPECT_EQ(steps_of(buffers,
                     producer + unary("y", loops, "sin", "a[d1, d0]") +
                         unary("z", loops, "cos", "a[d0, d1]"),
                     "y z"),
            (Steps{"a", "y", "z"}));
  EXPECT_EQ(steps_of(buffers, producer + unary("y", loops, "sin", "a[d1, d0]"), "y a"),
            (Steps{"a", "y"}))
      << "it has to be in memory anyway";
}

TEST(InlineProducers, FewCheapElementsAreBroadcast) {
  const std::string buffers = "x: f32[8] input; b: f32[8]; y z: f32[8, 8]";
  const std::string loops = "d0 < 8, d1 < 8";
  const std::string readers = unary("y", loops, "exp", "b[d0]") + unary("z", loops, "sin", "b[d1]");
  EXPECT_EQ(steps_of(buffers, binary("b", "d0 < 8", "add", "x[d0]", "x[-d0 + 7]") + readers, "y z"),
            (Steps{"y", "z"}));
  EXPECT_EQ(steps_of(buffers, unary("b", "d0 < 8", "lgamma", "x[d0]") + readers, "y z"),
            (Steps{"b", "y", "z"}))
      << "expensive ones are not";
}

TEST(InlineProducers, AnOverwrittenInputIsReadBefore) {
  // y reads the old x through c.
  const std::string text = R"(program() {
  buffer x: f32[64] input 0
  buffer c: f64[64]
  buffer y: f64[64]
  inputs (x = tensor x)
  pointwise c[d0 < 64] {
    t0 = load x[d0]
    t1 = cast t0 to f64
    yield t1
  }
  pointwise x[d0 < 64] {
    t0 = load x[d0]
    t1 = exp t0
    yield t1
  }
)" + unary("y", "d0 < 64", "sin", "c[d0]") +
                           "  return (tensor y)\n}\n";
  EXPECT_EQ(written_by_step(plan_of(text, inlining_alone()))[0], "c");
}

// ---- eager's checks ----

constexpr const char* kQuotients = R"(program() {
  buffer a: i64[16] input 0
  buffer b: i64[16] input 1
  buffer q: i64[16]
  buffer y: i64[SIZE]
  inputs (a = tensor a, b = tensor b)
  pointwise q[d0 < 16] {
    t0 = load a[d0]
    t1 = load b[d0]
    t2 = check_divisor t1
    t3 = floor_div t0, t2
    yield t3
  }
  pointwise y[d0 < SIZE] {
    t0 = load q[POSITION]
    t1 = neg t0
    yield t1
  }
  return (RESULTS)
}
)";

std::string quotients(const std::string& size, const std::string& position,
                      const std::string& results = "tensor y") {
  std::string text = kQuotients;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"SIZE", size},
                                 {"POSITION", position},
                                 {"RESULTS", results}}) {
    for (size_t at; (at = text.find(from)) != text.npos;) text.replace(at, from.size(), to);
  }
  return text;
}

TEST(InlineProducers, ChecksAreDoneForEveryElement) {
  EXPECT_EQ(written_by_step(plan_of(quotients("16", "d0"), inlining_alone())), Steps{"y"});
  EXPECT_EQ(written_by_step(plan_of(quotients("4", "d0 + 3"), inlining_alone())), (Steps{"q", "y"}))
      << "a slice does not read the divisors that eager checks";
  EXPECT_EQ(written_by_step(plan_of(quotients("4", "d0 + 3"))), (Steps{"q", "y"}));
}

TEST(InlineProducers, ChecksOfAResultThatNobodyReadsAreDone) {
  const Plan plan = plan_of(quotients("16", "d0", "none"));
  EXPECT_EQ(plan.kernels.size(), 1u);
}

TEST(InlineProducers, ChecksUnderAConditionAreDoneWithoutIt) {
  const std::string text = R"(program() {
  buffer a: i64[16] input 0
  buffer b: i64[16] input 1
  buffer q: i64[16]
  buffer y: i64[16]
  inputs (a = tensor a, b = tensor b)
  pointwise q[d0 < 16] {
    t0 = load a[d0]
    t1 = load b[d0]
    t2 = check_divisor t1
    t3 = floor_div t0, t2
    yield t3
  }
  pointwise y[d0 < 16] {
    t0 = load b[d0]
    t1 = gt t0, 2: i64
    t2 = load q[d0]
    t3 = masked t1, t2, 0: i64
    yield t3
  }
  return (tensor y)
}
)";
  for (const ScheduleOptions& options : {ScheduleOptions(), inlining_alone()}) {
    const Plan plan = plan_of(text, options);
    EXPECT_NE(storage_of(plan, "q").kind, Storage::Kind::kNone) << "every quotient is stored";
  }
}

}  // namespace
}  // namespace litz
