#include "driver/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "driver/stage_options.h"
#include "support/error.h"

namespace litz {
namespace {

std::optional<std::string> no_variable(const std::string&) { return std::nullopt; }

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, RowsNameEveryFieldOnceWithItsTypeAndDefault) {
  std::set<std::string_view> names;
  const std::set<std::string_view> types = {"bool", "int", "float", "str"};
  const Options defaults;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(types.contains(row.type)) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_EQ(parse_option(std::string(row.name), option_text(defaults, row.name)), row.value)
        << row.name;
  }
  EXPECT_TRUE(names.contains("target"));
}

TEST(Options, WhatIsGivenWinsOverTheEnvironmentOverTheDefaults) {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "LITZ_JOBS") return "3";
    if (name == "LITZ_FUSE") return "off";
    if (name == "LITZ_COMPILE_TIME_LIMIT") return "2.5";
    return std::nullopt;
  };
  const Options options = make_options({{"jobs", int64_t{7}}}, environment);
  EXPECT_EQ(options.jobs, 7);
  EXPECT_FALSE(options.fuse);
  EXPECT_EQ(options.compile_time_limit, 2.5);
  EXPECT_EQ(options.target, "native");
}

TEST(Options, EachHasAVariableOfItsOwnThatSetsIt) {
  std::set<std::string_view> variables;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(row.variable.starts_with("LITZ_")) << row.name;
    EXPECT_TRUE(variables.insert(row.variable).second) << row.variable;
  }
  const Options options =
      make_options({}, [](const std::string& name) -> std::optional<std::string> {
        if (name == "LITZ_DEBUG") return "stages";
        return std::nullopt;
      });
  EXPECT_EQ(options.trace, "stages");
}

TEST(Options, AnIntIsAFloatWhereAFloatIsAsked) {
  EXPECT_EQ(make_options({{"compile_time_limit", int64_t{3}}}, no_variable).compile_time_limit,
            3.0);
}

TEST(Options, VariablesThatLitzDoesNotKnowAreNamed) {
  EXPECT_EQ(unknown_variables_warning({}), "");
  EXPECT_EQ(unknown_variables_warning({"PATH", "LITZ_DEBUG", "LITZ_VENV", "LITZ_TEST_ZIG"}), "");
  EXPECT_EQ(unknown_variables_warning({"LITZ_TRAEC", "LITZ_CAHCE", "LITZ_JOBS"}),
            "the environment sets variables that Litz does not know; LITZ_TRAEC (did you mean "
            "LITZ_DEBUG?), LITZ_CAHCE (did you mean LITZ_CACHE?); "
            "litz.options() lists those that it reads");
  const std::string far = unknown_variables_warning({"LITZ_SOMETHING_ELSE_ALTOGETHER"});
  EXPECT_EQ(far.find("did you mean"), far.npos) << far;
  for (const OptionRow& row : option_rows())
    EXPECT_EQ(unknown_variables_warning({std::string(row.variable)}), "");
}

TEST(Options, FaultsNameTheOptionAndWhatIsValid) {
  EXPECT_NE(
      message_of([] { make_options({{"fuze", true}}, no_variable); }).find("options are target, "),
      std::string::npos);
  EXPECT_EQ(message_of([] { make_options({{"fuse", int64_t{1}}}, no_variable); }),
            "option fuse takes bool");
  EXPECT_EQ(message_of([] {
              make_options({}, [](const std::string& name) -> std::optional<std::string> {
                if (name == "LITZ_CACHE") return "perhaps";
                return std::nullopt;
              });
            }),
            "option cache takes bool, not 'perhaps'");
  EXPECT_EQ(message_of([] { make_options({{"optimization_level", int64_t{9}}}, no_variable); }),
            "option optimization_level is 9, not 0 to 3");
  EXPECT_EQ(message_of([] { make_options({{"jobs", int64_t{-1}}}, no_variable); }),
            "option jobs is -1, not 0 to 1024");
  EXPECT_EQ(message_of([] { make_options({{"compile_time_limit", -0.5}}, no_variable); }),
            "option compile_time_limit is -0.5, not 0 to 1000000");
  EXPECT_EQ(message_of([] {
              make_options({{"compile_time_limit", std::nan("")}}, no_variable);
            }).find("option compile_time_limit is nan"),
            0u);
  EXPECT_EQ(message_of([] { make_options({{"cache_size_mb", int64_t{1} << 50}}, no_variable); }),
            "option cache_size_mb is 1125899906842624, not 1 to 1000000000");
  EXPECT_EQ(message_of([] {
              make_options({}, [](const std::string& name) -> std::optional<std::string> {
                if (name == "LITZ_MAX_KERNEL_NODES") return "0";
                return std::nullopt;
              });
            }),
            "option max_kernel_nodes is 0, not 1 to 1000000");
  EXPECT_EQ(message_of([] { parse_option("jobs", "3x"); }), "option jobs takes int, not '3x'");
  EXPECT_NE(message_of([] { parse_option("job", "3"); }).find("unknown option 'job'"),
            std::string::npos);
}

TEST(Options, ListsAreSplitAtCommas) {
  EXPECT_TRUE(split_list("").empty());
  EXPECT_TRUE(split_list(",,").empty());
  EXPECT_EQ(split_list("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(split_list(",aten::sum,,aten::mul.Tensor,"),
            (std::vector<std::string>{"aten::sum", "aten::mul.Tensor"}));
}

TEST(Options, StagesGetWhatTheyAreAskedFor) {
  Options options;
  options.fallback_ops = "aten::sin";
  options.fuse = false;
  options.max_kernel_nodes = 12;
  options.target = "avx2";
  options.jobs = 3;
  EXPECT_EQ(lowering_options(options).fallback_ops, std::vector<std::string>{"aten::sin"});
  EXPECT_FALSE(schedule_options(options).fuse);
  EXPECT_EQ(schedule_options(options).max_kernel_nodes, 12);
  EXPECT_EQ(schedule_options(options).column_sums.elements, 0);
  DeviceTarget device{"cuda", "sm_90", 132, "", 0};
  EXPECT_EQ(schedule_options(options, KernelDialect::kThreads, device).few_rows, 132);
  EXPECT_GT(schedule_options(options, KernelDialect::kThreads, device).column_sums.elements, 0);
  EXPECT_EQ(schedule_options(options, KernelDialect::kTriton, device).few_rows, 132);
  EXPECT_GT(schedule_options(options, KernelDialect::kTriton, device).column_sums.elements, 0);
  const CppArtifactOptions printing = artifact_options(options, cpu_target(options));
  EXPECT_TRUE(printing.target.avx2);
  EXPECT_FALSE(printing.target.avx512);
  EXPECT_EQ(printing.target.vector_bytes, 32);
  EXPECT_EQ(printing.units, 3);
  options.target = "moon";
  EXPECT_NE(message_of([&] { cpu_target(options); }).find("valid are native"), std::string::npos);
}

}  // namespace
}  // namespace litz
