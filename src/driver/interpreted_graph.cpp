#include "driver/interpreted_graph.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "ir/bind_symbols.h"
#include "ir/interpret_program.h"

namespace litz {
namespace {

class InterpretedGraph final : public Executable {
 public:
  explicit InterpretedGraph(const Program& program) : interpreter_(program) {
    for (const SymbolSource& source : bind_symbols(program).sources) {
      symbols_.push_back(source.symbol);
    }
    is_written_.resize(program.buffers().size());
    for (const Operation& operation : program.operations()) {
      for (BufferId id : buffers_written(operation)) is_written_[id.value] = true;
    }
    for (const Program::Input& input : interpreter_.program().inputs) {
      inputs_.push_back(input.buffer.valid() ? tensor_spec(input) : integer_spec(input));
    }
    table_.abi_version = LITZ_ABI_VERSION;
    table_.num_inputs = static_cast<int32_t>(inputs_.size());
    table_.num_outputs = static_cast<int32_t>(program.outputs.size());
    table_.num_extern_ops = static_cast<int32_t>(interpreter_.extern_ops().size());
    table_.num_symbols = static_cast<int32_t>(symbols_.size());
    table_.inputs = inputs_.data();
    table_.extern_ops = interpreter_.extern_ops().data();
    table_.description = "{\"interpreted\": true}";
    table_.shapes_count = interpreter_.shapes_count();
  }

  const LitzArtifact& table() const override { return table_; }

  int run(const LitzHost& host, Frame& frame, BlockPool*) const override {
    return interpreter_.run(&host, frame.inputs.data(), frame.outputs.data(),
                            frame.output_tensors.data(), frame.shapes.data());
  }

 private:
  LitzInputSpec tensor_spec(const Program::Input& input) {
    const Buffer& buffer = interpreter_.program().buffer(input.buffer);
    LitzInputSpec spec{};
    spec.name = input.name.c_str();
    spec.kind = LITZ_TENSOR;
    spec.dtype = static_cast<LitzDType>(buffer.dtype);
    spec.ndim = static_cast<int32_t>(buffer.sizes.size());
    spec.is_mutated = is_written_[input.buffer.value];
    spec.sizes = extents(buffer.sizes);
    spec.strides = extents(buffer.strides);
    return spec;
  }

  LitzInputSpec integer_spec(const Program::Input& input) {
    LitzInputSpec spec{};
    spec.name = input.name.c_str();
    spec.kind = LITZ_INT;
    spec.sizes = extents({input.integer});
    return spec;
  }

  // Other expressions than numbers and symbols are checked by the interpreter.
  const int64_t* extents(const std::vector<Index>& values) {
    std::vector<int64_t>& row = extents_.emplace_back();
    for (Index value : values) {
      const auto symbol = std::find(symbols_.begin(), symbols_.end(), value);
      if (value.is_constant()) {
        row.push_back(value.constant());
      } else if (symbol != symbols_.end()) {
        row.push_back(LITZ_SYMBOL_EXTENT(symbol - symbols_.begin()));
      } else {
        row.push_back(LITZ_ANY_EXTENT);
      }
    }
    return row.data();
  }

  ProgramInterpreter interpreter_;
  std::vector<Index> symbols_;
  std::vector<bool> is_written_;              // by buffer
  std::deque<std::vector<int64_t>> extents_;  // what the specs point into
  std::vector<LitzInputSpec> inputs_;
  LitzArtifact table_{};
};

}  // namespace

std::shared_ptr<const Executable> make_interpreted_graph(const Program& program) {
  return std::make_shared<InterpretedGraph>(program);
}

}  // namespace litz
