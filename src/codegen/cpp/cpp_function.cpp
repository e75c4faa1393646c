#include "codegen/cpp/cpp_function.h"

#include "support/indented_buffer.h"

namespace litz {
namespace {

std::string numbered(std::string_view stem, size_t number) {
  return std::string(stem) + std::to_string(number);
}

std::string without_last(std::string text) {
  text.pop_back();
  return text;
}

}  // namespace

CppKernel print_cpp_function(const KernelArguments& arguments, const CppFunction& function) {
  CppKernel out;
  out.buffers = arguments.buffers();
  out.symbols = arguments.symbols();
  out.checks_values = arguments.checks_values();
  const std::string name(kKernelName);
  const auto for_each_argument = [&](const auto& print) {
    for (size_t i = 0; i < out.buffers.size(); ++i) print("char*", numbered("p", i));
    for (size_t i = 0; i < out.symbols.size(); ++i) print("i64", numbered("n", i));
  };

  IndentedBuffer t;
  t.open("struct " + name + "_state {");
  t.line("i32* status;");
  for_each_argument([&](const std::string& type, const std::string& argument) {
    t.line(type + " " + argument + ";");
  });
  for (const std::string& member : function.members) t.line(member + ";");
  t.close("};");
  t.line("");
  t.open("static void " + name + "_body(i64 begin, i64 end, void* state_) {");
  t.line("const " + name + "_state* s = (const " + name + "_state*)state_;");
  t.line("i32* const status = s->status;");
  for_each_argument([&](const std::string& type, const std::string& argument) {
    t.line((type == "i64" ? "const i64 " : type + " const ") + argument + " = s->" + argument +
           ";");
  });
  for (const std::string& unpack : function.unpacks) t.line(unpack + ";");
  t.line("(void)status;");
  t.close("");
  const std::string definition = without_last(t.text()) + function.body + "}\n\n";

  IndentedBuffer d;
  std::string signature = "void " + name + "(const LitzHost* host, i32* status";
  for_each_argument([&](const std::string& type, const std::string& argument) {
    signature += ", " + type + " " + argument;
  });
  d.open(signature + ") {");
  d.line(name + "_state state;");
  d.line("state.status = status;");
  for_each_argument([&](const std::string&, const std::string& argument) {
    d.line("state." + argument + " = " + argument + ";");
  });
  for (const std::string& start : function.starts) d.line(start + ";");
  if (function.sequential) {
    d.line("if (" + function.total + " > 0) " + name + "_body(0, " + function.total + ", &state);");
  } else {
    d.line("run_range(host, " + function.total + ", " + function.grain + ", " + name +
           "_body, &state);");
  }
  out.text = definition + d.text() + function.finish + "}\n";
  return out;
}

void store_vectors(CppBody& body, KernelAnalysis& analysis, size_t loop, int lanes,
                   int64_t extent) {
  constexpr int kLongWork = 24;  // operations
  const std::string step = std::to_string(lanes);
  const auto print = [&](const std::string& valid, const std::string& header) {
    body.push_vector_scope(loop, "v", lanes, valid);
    body.store_outer();
    body.pop_scope(header);
  };
  if (extent % lanes == 0) {
    print("", "for (; v < to; v += " + step + ")");
  } else if (analysis.work(analysis.outer_roots(), LoopMask{1} << loop).operations >= kLongWork) {
    body.push_scope(CppBody::kNoLoop, "");
    body.out().line("const i64 valid = to - v < " + step + " ? to - v : " + step + ";");
    print("valid", "");
    body.pop_scope("for (; v < to; v += " + step + ")");
  } else {
    print("", "for (; v + " + step + " <= to; v += " + step + ")");
    print("(to - v)", "if (v < to)");
  }
}

}  // namespace litz
