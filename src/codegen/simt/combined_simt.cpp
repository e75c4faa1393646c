#include "codegen/simt/combined_simt.h"

#include "codegen/cpp/cpp_text.h"
#include "support/indented_buffer.h"

namespace litz {
namespace {

// ", TYPE p0, TYPE p1, ..."
std::string pointers(const std::string& type, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += ", " + type + " p" + std::to_string(i);
  return text;
}

}  // namespace

SimtKernel print_combined_simt(const Program& program, const CombinedLaunch& launch,
                               const SimtDialect& dialect) {
  const SimtWords& words = dialect.words();
  const std::string name(kSimtKernelName);
  const std::string pointer = words.global + "char*";
  const std::string threads = std::to_string(launch.bodies[0].members[0].threads);
  SimtKernel kernel;
  kernel.buffers = launch.buffers;
  kernel.takes_array = true;
  for (size_t i = 0; i < launch.bodies.size(); ++i) {
    const CombinedPart& one = launch.bodies[i].members[0];
    kernel.checks_values = kernel.checks_values || one.checks;
    kernel.device_text +=
        "LITZ_INLINE void " + name + "_body" + std::to_string(i) + "(i32 pid, i32 n" +
        pointers(pointer, one.buffers.size()) + ") {\n" +
        (one.checks ? "  i32 checked = 0;\n  i32* const status = &checked;\n" : "") +
        "  (void)pid;\n  (void)n;\n" + one.body + "}\n\n";
  }
  ChoiceWords choice;
  choice.branch[0] = "if (";
  choice.branch[1] = ") {";
  choice.otherwise = "} else {";
  choice.end = "}";
  choice.end_of_statement = ";";
  choice.choice[0] = "(";
  choice.choice[1] = " ? ";
  choice.choice[2] = " : ";
  choice.choice[3] = ")";
  choice.condition = "const bool ";
  choice.integer = "const i32 ";
  choice.pointer = pointer + " const ";
  std::string head = replace_all(words.kernel, "THREADS", threads);
  head = replace_all(head, "NAME", name);
  kernel.device_text += head + "(" + pointer + " scratch" +
                        pointers(pointer, launch.buffers.size()) + ") {\n  const i32 pid = (i32)" +
                        words.block[0] + ";\n" + print_choice(launch, choice, 1, name + "_body") +
                        "}\n";

  const std::string count = std::to_string(launch.buffers.size());
  IndentedBuffer h;
  h.open("static void " + name +
         "(const LitzHost* host, i32* status, char* scratch, char** pointers) {");
  h.line("if (*status != 0) return;");
  h.line("void* arguments[" + count + " + 1] = {&scratch};");
  h.line("for (i32 i = 0; i < " + count + "; ++i) arguments[i + 1] = pointers + i;");
  h.line("const i64 grid[3] = {" + std::to_string(launch.programs()) + ", 1, 1};");
  h.line("*status = host->launch(host->self, " + std::string(kSimtKernelNumber) + ", grid, " +
         threads + ", 0, arguments);");
  h.close();
  kernel.host_text = h.text();
  kernel.tile = threads + " threads";
  kernel.launches.push_back(
      {program.indices().constant(launch.programs()), 1, launch.bodies[0].members[0].threads});
  return kernel;
}

}  // namespace litz
