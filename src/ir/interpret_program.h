// Runs a Program without compiling it: the oracle that generated code is compared with, and the
// engine on machines without a compiler.
//
// It does what the artifact of the same program does, through the same LitzHost and with the same
// ownership (include/litz/artifact.h). Scalars mean what ir/expr_ops.h says; functions such as exp
// are computed in double and rounded, sums of floats accumulate in double. Loops run on the calling
// thread, about a nanosecond or two per operation and element.
//
// Memory: a buffer that an output looks into is allocated by the host; other buffers are the
// interpreter's and are freed after their last use. An output that is a whole buffer takes the
// buffer's tensor, or is LITZ_SAME_INPUT or LITZ_SAME_OUTPUT; a constant is copied; every other
// output is made by LitzHost::view.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ir/program.h"
#include "litz/artifact.h"

namespace litz {

class ProgramInterpreter {
 public:
  // Throws InternalError where a size symbol has no source (ir/bind_symbols.h). The program should
  // have passed verify_program.
  explicit ProgramInterpreter(Program program);
  ~ProgramInterpreter();
  ProgramInterpreter(const ProgramInterpreter&) = delete;
  ProgramInterpreter& operator=(const ProgramInterpreter&) = delete;

  const Program& program() const;

  // What LitzHost::call's `op` indexes: the program's library ops in order.
  std::span<const LitzExternOp> extern_ops() const;
  int64_t shapes_count() const;

  // LitzArtifact::run without its workspace. Throws nothing. Any number of threads may run one
  // interpreter at once.
  int run(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
          LitzTensor* output_tensors, int64_t* shapes) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace litz
