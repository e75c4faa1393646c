#include "ir/interpret_program.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "ir/bind_symbols.h"
#include "ir/check_status.h"
#include "ir/extern_arguments.h"
#include "ir/run_operation.h"
#include "support/error.h"

namespace litz {

struct ProgramInterpreter::Impl {
  Program program;
  SymbolBinding binding;
  std::vector<LitzExternOp> extern_ops;
  std::vector<std::vector<BufferId>> last_uses;  // by operation: buffers that are free after it
  std::vector<bool> is_output;                   // by buffer
  int64_t shapes_count = 0;

  explicit Impl(Program given) : program(std::move(given)), binding(bind_symbols(program)) {
    is_output.resize(program.buffers().size());
    for (const ProgramOutput& output : program.outputs) {
      if (const auto* view = std::get_if<BufferView>(&output.v)) {
        is_output[view->buffer.value] = true;
        shapes_count += 2 * static_cast<int64_t>(view->sizes.size());
      }
    }
    for (const Operation& operation : program.operations()) {
      if (const auto* kernel = std::get_if<ExternKernel>(&operation.v)) {
        extern_ops.push_back(
            {kernel->name.c_str(), kernel->overload.c_str(), kernel->node.c_str()});
      }
    }
    find_last_uses();
  }

  void find_last_uses() {
    std::vector<OperationId> last(program.buffers().size());
    for (uint32_t i = 0; i < program.operations().size(); ++i) {
      const Operation& operation = program.operations()[OperationId(i)];
      for (BufferId id : buffers_written(operation)) last[id.value] = OperationId(i);
      for (BufferId id : buffers_read(operation)) last[id.value] = OperationId(i);
    }
    last_uses.resize(program.operations().size());
    for (uint32_t i = 0; i < last.size(); ++i) {
      if (last[i].valid() && !is_output[i]) last_uses[last[i].value].push_back(BufferId(i));
    }
  }
};

namespace {

struct HostFailure {
  int status;  // the host has left a message
};

struct FreeAligned {
  void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};

enum class Owner : uint8_t {
  kNobody,   // not made yet, or freed
  kCaller,   // an input
  kProgram,  // a constant
  kRun,      // a temporary
  kHost,     // allocated by the host, or a library op's result
};

// A buffer during one run.
struct Place {
  Owner owner = Owner::kNobody;
  MemoryRegion region;
  LitzTensor tensor{};
  std::unique_ptr<void, FreeAligned> memory;  // kRun
  bool given = false;                         // is one of the outputs
};

std::vector<int64_t> to_vector(const int64_t* items, int32_t count) {
  return {items, items + count};
}

// Elements from the first to the last.
int64_t span_of(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t span = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    span += (sizes[d] - 1) * strides[d];
  }
  return span;
}

// True if walking the two tensors of these sizes visits the same memory.
bool same_strides(std::span<const int64_t> sizes, std::span<const int64_t> a,
                  std::span<const int64_t> b) {
  for (int64_t size : sizes) {
    if (size == 0) return true;
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

// One call. What it acquired from the host and did not give away is released at its end.
class ProgramRun {
 public:
  ProgramRun(const Program& program, std::span<const std::vector<BufferId>> last_uses,
             const std::vector<bool>& is_output, const LitzHost* host)
      : program_(program),
        last_uses_(last_uses),
        is_output_(is_output),
        host_(host),
        places_(program.buffers().size()) {}

  ~ProgramRun() {
    for (Place& place : places_) {
      if (place.owner == Owner::kHost && !(committed_ && place.given)) release(place.tensor);
    }
    for (LitzTensor& tensor : replaced_) release(tensor);
    if (committed_) return;
    for (LitzTensor& tensor : made_outputs_) release(tensor);
  }
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  int execute(const SymbolBinding& binding, const LitzValue* inputs, LitzValue* outputs,
              LitzTensor* output_tensors, int64_t* shapes) {
    const std::vector<int64_t> values = read_symbols(program_, binding, inputs);
    for (size_t i = 0; i < values.size(); ++i) {
      sizes_.emplace(binding.sources[i].symbol, values[i]);
    }
    place_inputs(inputs);
    place_constants();
    int32_t extern_number = 0;
    for (uint32_t i = 0; i < program_.operations().size(); ++i) {
      const Operation& operation = program_.operations()[OperationId(i)];
      if (const auto* kernel = std::get_if<ExternKernel>(&operation.v)) {
        call_library(*kernel, extern_number++);
      } else if (const LitzStatus status = run_loops(operation); status != LITZ_OK) {
        const std::string message = std::string(failure_text(status)) + operation.origin;
        host_->fail(host_->self, status, message.c_str());
        return status;
      }
      for (BufferId id : last_uses_[i]) free_place(place(id));
    }
    make_outputs(outputs, output_tensors, shapes);
    committed_ = true;
    return LITZ_OK;
  }

 private:
  Place& place(BufferId id) { return places_[id.value]; }

  int64_t value_of(Index index) const {
    return evaluate(index, [this](Index symbol) { return size_of(symbol); });
  }
  int64_t size_of(Index symbol) const {
    const auto found = sizes_.find(symbol);
    LITZ_CHECK(found != sizes_.end(), to_string(symbol) + " has no value outside of its loops");
    return found->second;
  }
  std::vector<int64_t> values_of(std::span<const Index> indices) const {
    std::vector<int64_t> values;
    for (Index index : indices) values.push_back(value_of(index));
    return values;
  }

  void check_host(int status) const {
    if (status != LITZ_OK) throw HostFailure{status};
  }
  void release(LitzTensor& tensor) { host_->release(host_->self, &tensor); }

  void free_place(Place& place) {
    if (place.owner == Owner::kHost) release(place.tensor);
    if (place.owner == Owner::kHost || place.owner == Owner::kRun) {
      place.memory.reset();
      place.owner = Owner::kNobody;
    }
  }

  // ---- making places ----

  // The tensor keeps the sizes and strides of whoever made it.
  static void set_place(Place& place, const Buffer& buffer, const LitzTensor& tensor) {
    place.tensor = tensor;
    place.region = {tensor.data, buffer.dtype, to_vector(tensor.sizes, tensor.ndim),
                    to_vector(tensor.strides, tensor.ndim), buffer.name};
  }

  // The same for a tensor with sizes and strides that do not outlive this call.
  static void set_own_place(Place& place, const Buffer& buffer, const LitzTensor& tensor) {
    set_place(place, buffer, tensor);
    place.tensor.sizes = place.region.sizes.data();
    place.tensor.strides = place.region.strides.data();
  }

  static LitzTensor make_tensor(const std::vector<int64_t>& sizes,
                                const std::vector<int64_t>& strides, DType dtype) {
    LitzTensor tensor{};
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
    tensor.ndim = static_cast<int32_t>(sizes.size());
    tensor.dtype = static_cast<LitzDType>(dtype);
    return tensor;
  }

  void place_inputs(const LitzValue* inputs) {
    for (size_t k = 0; k < program_.inputs.size(); ++k) {
      const BufferId id = program_.inputs[k].buffer;
      if (!id.valid()) continue;
      set_place(place(id), program_.buffer(id), *inputs[k].u.tensor);
      place(id).owner = Owner::kCaller;
    }
  }

  void place_constants() {
    for (uint32_t i = 0; i < places_.size(); ++i) {
      const Buffer& buffer = program_.buffer(BufferId(i));
      if (buffer.kind != BufferKind::kConstant) continue;
      const std::vector<int64_t> sizes = values_of(buffer.sizes);
      const std::vector<int64_t> strides = values_of(buffer.strides);
      LitzTensor tensor = make_tensor(sizes, strides, buffer.dtype);
      // Nothing writes to a constant: the verifier sees to it.
      tensor.data = const_cast<std::byte*>(buffer.bytes.data());
      set_own_place(places_[i], buffer, tensor);
      places_[i].owner = Owner::kProgram;
    }
  }

  void allocate(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    Place& made = place(id);
    const std::vector<int64_t> sizes = values_of(buffer.sizes);
    const std::vector<int64_t> strides = values_of(buffer.strides);
    LitzTensor tensor = make_tensor(sizes, strides, buffer.dtype);
    if (is_output_[id.value]) {
      check_host(host_->allocate(host_->self, &tensor));
      made.owner = Owner::kHost;
    } else {
      const int64_t bytes = span_of(sizes, strides) * litz::size_of(buffer.dtype);
      made.memory.reset(
          ::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::align_val_t(64)));
      tensor.data = made.memory.get();
      made.owner = Owner::kRun;
    }
    set_own_place(made, buffer, tensor);
  }

  // ---- operations ----

  LitzStatus run_loops(const Operation& operation) {
    for (BufferId id : buffers_written(operation)) {
      if (place(id).owner == Owner::kNobody) allocate(id);
    }
    const OperationMemory memory = {
        [this](Index symbol) { return size_of(symbol); },
        [this](BufferId id) -> const MemoryRegion& {
          LITZ_CHECK(place(id).owner != Owner::kNobody,
                     "buffer " + program_.buffer(id).name + " is used before it is written");
          return place(id).region;
        }};
    return std::visit(
        [&](const auto& item) -> LitzStatus {
          if constexpr (std::is_same_v<std::decay_t<decltype(item)>, ExternKernel>) {
            return LITZ_OK;
          } else {
            return run_operation(item, memory);
          }
        },
        operation.v);
  }

  LitzTensor view_of(const BufferView& view, const std::vector<int64_t>& sizes,
                     const std::vector<int64_t>& strides) {
    const Place& base = place(view.buffer);
    LITZ_CHECK(base.owner != Owner::kNobody,
               "view of buffer " + program_.buffer(view.buffer).name + ", which has no memory");
    LitzTensor tensor = make_tensor(sizes, strides, view.dtype);
    tensor.data = static_cast<std::byte*>(base.tensor.data) +
                  value_of(view.offset) * litz::size_of(view.dtype);
    return tensor;
  }

  void call_library(const ExternKernel& kernel, int32_t number) {
    ExternArguments arguments([this](Index index) { return value_of(index); },
                              [this](const BufferView& view, const std::vector<int64_t>& sizes,
                                     const std::vector<int64_t>& strides) {
                                return is_whole_buffer(program_, view)
                                           ? place(view.buffer).tensor
                                           : view_of(view, sizes, strides);
                              });
    const std::vector<LitzValue> values = arguments.build(kernel.arguments);
    std::vector<LitzValue> results(kernel.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const BufferId id = kernel.outputs[i];
      if (!id.valid()) continue;
      place(id).tensor = LitzTensor{};
      results[i].kind = LITZ_TENSOR;
      results[i].u.result = &place(id).tensor;
    }
    check_host(host_->call(host_->self, number, values.data(), static_cast<int32_t>(values.size()),
                           results.data(), static_cast<int32_t>(results.size())));
    // All results belong to this run before anything below may fail.
    for (size_t i = 0; i < results.size(); ++i) {
      const BufferId id = kernel.outputs[i];
      if (id.valid() && results[i].kind == LITZ_TENSOR) place(id).owner = Owner::kHost;
    }
    for (BufferId id : kernel.outputs) {
      if (id.valid()) adopt(kernel, id);
    }
  }

  // Checks a library op's result against the buffer; copies it where its layout is another, or
  // where it looks into memory that may end before it.
  void adopt(const ExternKernel& kernel, BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    Place& made = place(id);
    const std::vector<int64_t> sizes = values_of(buffer.sizes);
    const LitzTensor result = made.tensor;
    const bool fits = made.owner == Owner::kHost &&
                      result.dtype == static_cast<LitzDType>(buffer.dtype) &&
                      to_vector(result.sizes, result.ndim) == sizes;
    if (!fits) {
      throw UserError(kernel.name + " (node " + kernel.node +
                      ") returned a tensor of another shape or dtype than was traced");
    }
    set_place(made, buffer, result);
    const std::vector<int64_t> strides = values_of(buffer.strides);
    const bool may_end_before = kernel.results_are_views || kernel.results_may_alias;
    if (!may_end_before && same_strides(sizes, made.region.strides, strides)) return;
    const MemoryRegion from = std::move(made.region);
    replaced_.push_back(result);
    made.owner = Owner::kNobody;
    allocate(id);
    copy_elements(from, made.region);
    release(replaced_.back());
    replaced_.pop_back();
  }

  // ---- outputs ----

  void make_outputs(LitzValue* outputs, LitzTensor* output_tensors, int64_t* shapes) {
    std::vector<size_t> taken_by(places_.size(), SIZE_MAX);  // the output that has the tensor
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      outputs[i] = LitzValue{};
      if (const auto* index = std::get_if<Index>(&output.v)) {
        set_integer(outputs[i], LITZ_INT, value_of(*index));
      }
      const auto* view = std::get_if<BufferView>(&output.v);
      if (view == nullptr) continue;
      Place& base = place(view->buffer);
      size_t& taken = taken_by[view->buffer.value];
      const bool whole = is_whole_buffer(program_, *view);
      if (whole && base.owner == Owner::kCaller) {
        set_integer(outputs[i], LITZ_SAME_INPUT, program_.buffer(view->buffer).number);
      } else if (whole && taken != SIZE_MAX) {
        set_integer(outputs[i], LITZ_SAME_OUTPUT, static_cast<int64_t>(taken));
      } else {
        const bool takes = whole && base.owner == Owner::kHost;
        if (takes) taken = i;
        base.given = base.given || takes;
        output_tensors[i] = make_output(*view, takes, &shapes);
        outputs[i].kind = LITZ_TENSOR;
        outputs[i].u.tensor = &output_tensors[i];
      }
    }
  }

  static void set_integer(LitzValue& value, LitzValueKind kind, int64_t number) {
    value.kind = kind;
    value.u.i = number;
  }

  // The buffer's own tensor where the output takes it; else a view, or a copy of a constant.
  LitzTensor make_output(const BufferView& view, bool takes, int64_t** shapes) {
    const std::vector<int64_t> sizes = values_of(view.sizes);
    const std::vector<int64_t> strides = values_of(view.strides);
    LitzTensor tensor = view_of(view, sizes, strides);
    tensor.sizes = *shapes;
    *shapes = std::copy(sizes.begin(), sizes.end(), *shapes);
    tensor.strides = *shapes;
    *shapes = std::copy(strides.begin(), strides.end(), *shapes);

    const Place& base = place(view.buffer);
    if (takes) {
      tensor.handle = base.tensor.handle;
      return tensor;
    }
    if (base.owner == Owner::kProgram) {
      const MemoryRegion from = {tensor.data, view.dtype, sizes, strides, base.region.name};
      check_host(host_->allocate(host_->self, &tensor));
      made_outputs_.push_back(tensor);
      copy_elements(from, {tensor.data, view.dtype, sizes, strides, base.region.name});
    } else {
      check_host(host_->view(host_->self, &base.tensor, &tensor));
      made_outputs_.push_back(tensor);
    }
    return tensor;
  }

  const Program& program_;
  std::span<const std::vector<BufferId>> last_uses_;
  const std::vector<bool>& is_output_;
  const LitzHost* host_;
  std::vector<Place> places_;
  std::unordered_map<Index, int64_t> sizes_;
  std::vector<LitzTensor> replaced_;      // library results that are being copied
  std::vector<LitzTensor> made_outputs_;  // views and copies
  bool committed_ = false;
};

ProgramInterpreter::ProgramInterpreter(Program program)
    : impl_(std::make_unique<const Impl>(std::move(program))) {}
ProgramInterpreter::~ProgramInterpreter() = default;

const Program& ProgramInterpreter::program() const { return impl_->program; }
std::span<const LitzExternOp> ProgramInterpreter::extern_ops() const { return impl_->extern_ops; }
int64_t ProgramInterpreter::shapes_count() const { return impl_->shapes_count; }

int ProgramInterpreter::run(const LitzHost* host, const LitzValue* inputs, LitzValue* outputs,
                            LitzTensor* output_tensors, int64_t* shapes) const {
  const auto fail = [&](int status, const char* message) {
    host->fail(host->self, status, message);
    return status;
  };
  try {
    ProgramRun run(impl_->program, impl_->last_uses, impl_->is_output, host);
    return run.execute(impl_->binding, inputs, outputs, output_tensors, shapes);
  } catch (const HostFailure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return fail(LITZ_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(LITZ_ERROR, error.what());
  }
}

}  // namespace litz
