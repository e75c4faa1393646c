#include "driver/compile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "ir/parse_program.h"
#include "passes/pipeline.h"
#include "runtime/loaded_artifact.h"
#include "schedule/schedule_steps.h"
#include "support/error.h"
#include "support/target.h"

namespace litz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGraph = R"(graph(%x: f32[8]) {
  %copy: f32[8] = aten::clone(%x)
  %sum: f32[8] = aten::add.Scalar(%copy, 1)
  return (%sum)
})";

// The same, under other names.
constexpr const char* kRenamed = R"(graph(%primals_1: f32[8]) {
  %clone: f32[8] = aten::clone(%primals_1)
  %add: f32[8] = aten::add.Scalar(%clone, 1)  # model.py:12 in forward
  return (%add)
})";

constexpr const char* kOther = R"(graph(%x: f32[8]) {
  %copy: f32[8] = aten::clone(%x)
  %sum: f32[8] = aten::add.Scalar(%copy, 2)
  return (%sum)
})";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CompileTest : public testing::Test {
 protected:
  CompileTest() {
    std::string pattern = (fs::temp_directory_path() / "litz-driver-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    options_.cache_dir = (folder_ / "cache").string();
    options_.jobs = 1;
  }
  ~CompileTest() override { fs::remove_all(folder_); }

  Compiled compile(const char* text) const {
    return compile_graph(parse_graph(text), options_, {});
  }
  bool is_cached(const Compiled& compiled) const {
    return nlohmann::json::parse(compiled.info)["cached"];
  }

  fs::path folder_;
  Options options_;
};

TEST_F(CompileTest, TheSecondTimeTheCacheAnswers) {
  const Compiled first = compile(kGraph);
  EXPECT_TRUE(first.warnings.empty());
  EXPECT_FALSE(is_cached(first));
  EXPECT_EQ(LoadedArtifact::load(first.path)->table().num_inputs, 1);
  const Compiled second = compile(kGraph);
  EXPECT_TRUE(is_cached(second));
  EXPECT_EQ(second.path, first.path);
}

TEST_F(CompileTest, TheKeyIsWhatIsComputedAndHow) {
  const std::string path = compile(kGraph).path;
  EXPECT_EQ(compile(kRenamed).path, path) << "names and lines are incidental";
  options_.compile_time_limit = 100;
  options_.verify = true;
  EXPECT_EQ(compile(kGraph).path, path) << "these options do not shape code";
  EXPECT_NE(compile(kOther).path, path);
  options_.optimization_level = 1;
  EXPECT_NE(compile(kGraph).path, path);
}

TEST_F(CompileTest, AReportFromTheCacheIsThatOfTheGraphAtHand) {
  const auto graph = [](const std::string& exp, const std::string& sums, const std::string& line) {
    return "graph(%x: f32[4]) {\n  %" + exp + ": f32[4] = aten::exp(%x)\n  %" + sums +
           ": f32[4] = aten::logcumsumexp(%" + exp + ", 0)  # " + line + "\n  return (%" + sums +
           ")\n}";
  };
  compile(graph("exp", "sums", "old.py:1 in f").c_str());
  const Compiled second = compile(graph("exp_7", "total", "new.py:9 in g").c_str());
  ASSERT_TRUE(is_cached(second));
  const auto info = nlohmann::json::parse(second.info);
  EXPECT_EQ(info["kernels"][0]["ops"][0], "exp_7");
  EXPECT_EQ(info["fallbacks"][0]["node"], "total");
  EXPECT_EQ(info["fallbacks"][0]["line"], "new.py:9 in g");
  EXPECT_EQ(info["places"]["sums: old.py:1 in f"], "total: new.py:9 in g");
  EXPECT_EQ(info["places"]["exp"], "exp_7");
  EXPECT_FALSE(info.contains("nodes"));
}

TEST_F(CompileTest, ACompilerThatHangsIsAskedOnce) {
  const fs::path compiler = folder_ / "hanging";
  const fs::path asked = folder_ / "asked";
  std::ofstream(compiler) << "#!/bin/sh\ncase \"$*\" in *--version*) echo 'g++ 1.0';"
                             " echo 'see the source for copying conditions'; exit;; esac\n"
                             "echo x >> "
                          << asked.string() << "\nexec sleep 60\n";
  fs::permissions(compiler, fs::perms::owner_all);
  options_.compiler = compiler.string();
  options_.compile_time_limit = 0.3;
  const Compiled first = compile(kGraph);
  EXPECT_TRUE(first.path.empty());
  ASSERT_EQ(first.warnings.size(), 1u);
  EXPECT_NE(first.warnings[0].find("it is not asked again"), std::string::npos);
  const std::string before = read(asked);
  const Compiled second = compile(kOther);
  EXPECT_NE(second.program, nullptr);
  EXPECT_TRUE(second.warnings.empty());
  EXPECT_EQ(read(asked), before);
  options_.compile_time_limit = 0.6;
  compile(kOther);
  EXPECT_NE(read(asked), before) << "who gives it more time asks again";
}

TEST_F(CompileTest, OpsThatDoNotExistAreAnError) {
  for (const char* valid : {"aten::sum", "aten::add.Scalar", "mine::op", "aten::clone,aten::mul"}) {
    options_.fallback_ops = valid;
    EXPECT_NO_THROW(compile(kGraph)) << valid;
  }
  options_.fallback_ops = "aten::su";
  try {
    compile(kGraph);
    FAIL() << "it compiled";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "option fallback_ops: there is no op 'aten::su'; ops of the graph are aten::add, "
                 "aten::add.Scalar, aten::clone");
  }
}

TEST_F(CompileTest, ATraceThatCannotBeWrittenIsSaid) {
  options_.trace = "/proc/no/such";
  const Compiled compiled = compile(kGraph);
  EXPECT_FALSE(compiled.path.empty());
  ASSERT_EQ(compiled.warnings.size(), 1u);
  EXPECT_NE(compiled.warnings[0].find("; /proc/no/such: "), std::string::npos);
}

TEST_F(CompileTest, WithoutACacheNothingIsKept) {
  options_.cache = false;
  const Compiled first = compile(kGraph);
  const Compiled second = compile(kGraph);
  EXPECT_TRUE(fs::exists(first.path));
  EXPECT_FALSE(is_cached(second));
  EXPECT_TRUE(fs::is_empty(folder_ / "cache" / "v1" / "entries"));
}

TEST_F(CompileTest, TheTraceHasEveryStageInOrder) {
  options_.trace = (folder_ / "trace").string();
  compile(kGraph);
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(folder_ / "trace" / "graph0")) {
    names.insert(file.path().filename().string());
  }
  const std::set<std::string> expected = {"00_graph.litz",
                                          "01_graph_after_remove_noops.litz",
                                          "02_program.litz",
                                          "03_groups_after_fuse_loops.txt",
                                          "04_plan_after_build_kernels.txt",
                                          "05_plan.txt",
                                          "06_graph.cpp",
                                          "07_build.log",
                                          "08_report.json"};
  EXPECT_EQ(names, expected);
  // Levels read back.
  const fs::path traced = folder_ / "trace" / "graph0";
  EXPECT_EQ(to_string(parse_graph(read(traced / "00_graph.litz"))), read(traced / "00_graph.litz"));
  EXPECT_EQ(parse_program(read(traced / "02_program.litz")).outputs.size(), 1u);
  compile(kGraph);
  EXPECT_TRUE(fs::exists(folder_ / "trace" / "graph1")) << "each compilation has its own folder";
}

TEST_F(CompileTest, EveryPassAndStepIsTimed) {
  const auto timings = nlohmann::json::parse(compile(kGraph).info)["timings"];
  for (const GraphPass& pass : graph_passes()) EXPECT_TRUE(timings.contains(pass.name));
  for (const ScheduleStep& step : schedule_steps()) EXPECT_TRUE(timings.contains(step.name));
}

TEST_F(CompileTest, APassThatIsSwitchedOffDoesNotRun) {
  options_.trace = (folder_ / "trace").string();
  options_.disable_passes = "remove_noops";
  compile(kGraph);
  EXPECT_FALSE(fs::exists(folder_ / "trace" / "graph0" / "01_graph_after_remove_noops.litz"));
  options_.disable_passes = "remove_nops";
  EXPECT_THROW(compile(kGraph), UserError);
}

TEST_F(CompileTest, AnInterpretedGraphIsAProgramAndAReason) {
  options_.interpret = true;
  const Compiled compiled = compile(kGraph);
  EXPECT_TRUE(compiled.path.empty());
  ASSERT_NE(compiled.program, nullptr);
  const auto info = nlohmann::json::parse(compiled.info);
  EXPECT_EQ(info["interpreted"], "the option interpret asks for it");
  EXPECT_TRUE(info["kernels"].empty());
  EXPECT_TRUE(compiled.warnings.empty());
}

TEST_F(CompileTest, AFaultLeavesAReproducer) {
  // A dimension that the tensor does not have: the reader would have to be wrong.
  const char* broken = R"(graph(%x: f32[4, 8]) {
  %s: f32[4, 8] = aten::_softmax(%x, 7, false)
  return (%s)
})";
  options_.fuse = false;
  try {
    compile(broken);
    FAIL() << "it compiled";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    const size_t hint = message.find("; reproduce it with: litz-opt --compile ");
    ASSERT_NE(hint, std::string::npos) << message;
    EXPECT_NE(message.find(" --option fuse=false "), std::string::npos) << message;
    const std::string path = message.substr(message.rfind(' ') + 1);
    EXPECT_EQ(read(path), to_string(parse_graph(broken)));
    fs::remove_all(fs::path(path).parent_path());
  }
}

TEST_F(CompileTest, TargetsAreThoseThatThisMachineCanRun) {
  for (const char* target :
       {"baseline", "avx2", "avx512", "avx512+bf16+vnni", "avx512+bf16+vnni+amx"}) {
    options_.target = target;
    if (CpuTarget::parse(target)->runs_on(CpuTarget::detect())) {
      EXPECT_FALSE(compile(kGraph).path.empty()) << target;
    } else {
      EXPECT_THROW(compile(kGraph), UserError) << target;
    }
  }
}

}  // namespace
}  // namespace litz
