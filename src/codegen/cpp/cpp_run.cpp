#include "codegen/cpp/cpp_run.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "codegen/cpp/cpp_text.h"
#include "ir/bind_symbols.h"
#include "ir/check_status.h"
#include "litz/artifact.h"
#include "support/error.h"
#include "support/indented_buffer.h"

namespace litz {
namespace {

constexpr int64_t kLargeInput = 64 * 1024;  // bytes that are worth a call

// Calls in a row have nothing to gain from an optimizer, which takes seconds for long ones.
constexpr const char* kPlainFunction = R"(
#if defined(__clang__)
#define LITZ_PLAIN __attribute__((optnone, noinline))
#else
#define LITZ_PLAIN __attribute__((optimize("O0"), noinline))
#endif
)";

// What runs after a library op: its result gets the layout that the kernels were compiled for.
constexpr const char* kExpectLayout = R"(
LITZ_PLAIN static int expect_layout(const LitzHost* host, LitzTensor* tensor, const i64* sizes, const i64* strides,
                                    i32 ndim, i32 dtype, bool copy, const char* message) {
  if (tensor->handle == 0 || tensor->ndim != ndim || tensor->dtype != dtype) {
    host->fail(host->self, 1, message);
    return 1;
  }
  bool same = !copy && SAME;
  bool empty = false;
  for (i32 i = 0; i < ndim; ++i) {
    if (tensor->sizes[i] != sizes[i]) {
      host->fail(host->self, 1, message);
      return 1;
    }
    if (sizes[i] == 0) empty = true;
    if (sizes[i] > 1 && tensor->strides[i] != strides[i]) same = false;
  }
  if (!same && !(empty && !copy)) {
    LitzTensor copied = *tensor;
    copied.sizes = sizes;
    copied.strides = strides;
    copied.handle = 0;
    int status = host->allocate(host->self, &copied);
    if (status == 0 && !empty) status = host->copy(host->self, tensor, &copied);
    host->release(host->self, tensor);
    *tensor = copied;
    if (status != 0) return status;
  }
  tensor->sizes = sizes;
  tensor->strides = strides;
  return 0;
}
)";

std::string text(int64_t value) { return std::to_string(value); }

std::string dtype_text(DType dtype) { return text(static_cast<int64_t>(dtype)); }

class RunPrinter {
 public:
  RunPrinter(const Plan& plan, const std::vector<KernelCall>& calls, Prelude& prelude,
             const CppRunOptions& options)
      : plan_(plan),
        program_(*plan.program),
        calls_(calls),
        prelude_(prelude),
        options_(options),
        binding_(bind_symbols(program_)),
        mutated_inputs_(mutated_inputs(program_)),
        unaligned_inputs_(unaligned_inputs(program_)),
        looked_into_(program_.buffers().size(), false),
        body_(2) {}

  CppRun print() {
    print_body();
    CppRun out;
    IndentedBuffer t;
    t.line(kPlainFunction);
    t.line(replace_all(kExpectLayout, "SAME", options_.aligned ? aligned("tensor->data") : "true"));
    for (const std::string& line : statics_) t.line(line);
    print_symbol_reader(t);
    print_workspace(t);
    print_run(t);
    print_description(t);
    out.text = t.text();
    out.extern_ops = extern_ops_;
    return out;
  }

 private:
  // ---- index expressions over the symbols ----

  std::string index(Index e) {
    return cpp_index(e, prelude_, [&](Index symbol) {
      return "s[" + text(static_cast<int64_t>(symbol_number(symbol))) + "]";
    });
  }

  size_t symbol_number(Index symbol) const {
    for (size_t i = 0; i < binding_.sources.size(); ++i) {
      if (binding_.sources[i].symbol == symbol) return i;
    }
    LITZ_CHECK(false, "symbol " + to_string(symbol) + " has no value");
  }

  std::string number_text(const InputNumber& number) const {
    const std::string input = "inputs[" + text(number.input) + "].u";
    switch (number.kind) {
      case InputNumber::Kind::kSize:
        return input + ".tensor->sizes[" + text(number.dimension) + "]";
      case InputNumber::Kind::kStride:
        return input + ".tensor->strides[" + text(number.dimension) + "]";
      case InputNumber::Kind::kInt:
        return input + ".i";
    }
    return {};
  }

  void print_symbol_reader(IndentedBuffer& t) {
    t.open("static void read_symbols(const LitzValue* inputs, i64* s) {");
    t.line("(void)inputs;");
    t.line("(void)s;");
    for (size_t i = 0; i < binding_.sources.size(); ++i) {
      const SymbolSource& source = binding_.sources[i];
      std::string value = number_text(source.number);
      if (source.offset != 0) value = "(" + value + " - (" + text(source.offset) + "))";
      if (source.factor != 1) {
        value = prelude_.function(PreludeFn::kFloorDiv, DType::kInt64, 1) + "(" + value + ", " +
                text(source.factor) + ")";
      }
      t.line("s[" + text(static_cast<int64_t>(i)) + "] = " + value + ";");
    }
    t.close();
    t.line("");
  }

  void print_workspace(IndentedBuffer& t) {
    t.open("static i64 workspace_bytes(const LitzValue* inputs) {");
    t.line("i64 s[" + text(symbol_slots()) + "];");
    t.line("read_symbols(inputs, s);");
    t.line("return " + index(scratch_offset() + options_.scratch_bytes) + ";");
    t.close();
    t.line("");
  }

  // Where scratch memory begins in the workspace.
  Index scratch_offset() const {
    if (options_.scratch_bytes == 0) return plan_.workspace_bytes;
    return ceil_div(plan_.workspace_bytes, program_.indices().constant(256)) * 256;
  }

  int64_t symbol_slots() const {
    return std::max<int64_t>(1, static_cast<int64_t>(binding_.sources.size()));
  }

  // ---- arrays of sizes and strides ----

  // A pointer that outlives the run: a constant of the artifact, or a part of `shapes`.
  std::string lasting_array(const std::vector<Index>& values) {
    if (values.empty()) return "0";
    if (std::all_of(values.begin(), values.end(), [](Index v) { return v.is_constant(); }))
      return constant_array(values);
    std::string key;
    for (Index v : values) key += text(v.id()) + ",";
    const auto [found, added] = shape_slots_.emplace(key, shapes_count_);
    if (added) {
      for (Index v : values) {
        shape_lines_.push_back("shapes[" + text(shapes_count_++) + "] = " + index(v) + ";");
      }
    }
    return "(shapes + " + text(found->second) + ")";
  }

  std::string constant_array(const std::vector<Index>& values) {
    std::string list;
    for (Index v : values) list += (list.empty() ? "" : ", ") + index(v);
    const auto [found, added] =
        arrays_.emplace(list, "z" + text(static_cast<int64_t>(arrays_.size())));
    if (added) statics_.push_back("static const i64 " + found->second + "[] = {" + list + "};");
    return found->second;
  }

  // ---- buffers ----

  const Storage& storage(BufferId id) const { return plan_.storage[id]; }
  bool whole(const BufferView& view) const { return is_whole_buffer(program_, view); }

  std::string tensor_name(BufferId id) const { return "x" + text(id.value); }

  // Address of a buffer's first element, a char*.
  std::string pointer(BufferId id) {
    const Storage& s = storage(id);
    switch (s.kind) {
      case Storage::Kind::kInput:
        return "(char*)inputs[" + text(s.number) + "].u.tensor->data";
      case Storage::Kind::kConstant:
        return options_.on_device ? device_constant(id) : "(char*)" + constant_bytes(id);
      case Storage::Kind::kWorkspace:
        return "(ws + " + index(s.offset_bytes) + ")";
      case Storage::Kind::kOutput:
      case Storage::Kind::kHost:
        return "(char*)" + tensor_name(id) + ".data";
      case Storage::Kind::kTaken:
        return pointer(BufferId(s.number));
      case Storage::Kind::kNone:
        break;
    }
    LITZ_CHECK(false, "buffer " + program_.buffer(id).name + " is used and has no storage");
  }

  static std::string aligned(const std::string& address) {
    return "((unsigned long long)" + address + " & " + text(kDeviceAlignment - 1) + ") == 0";
  }

  // ... as kernels get it: of an input that begins anywhere, a copy, which is copied back where
  // they write to it.
  std::string kernel_pointer(BufferId id) {
    looked_into_[id.value] = true;
    const Storage& s = storage(id);
    if (!options_.aligned || s.kind != Storage::Kind::kInput || unaligned_inputs_[id.value])
      return pointer(id);
    const std::string name = "in" + text(s.number);
    if (!aligned_inputs_.emplace(id.value, true).second) return name;
    const std::string input = "inputs[" + text(s.number) + "].u.tensor";
    const Buffer& buffer = program_.buffer(id);
    const std::string sizes = lasting_array({storage_elements(program_, buffer)});
    const std::string strides = lasting_array({program_.indices().constant(1)});
    const std::string copy = name + "_copy";
    const std::string rest = sizes + ", " + strides + ", 1, " + dtype_text(buffer.dtype) + ", 0};";
    tensor_lines_.push_back("char* " + name + " = (char*)" + input + "->data;");
    tensor_lines_.push_back("LitzTensor " + copy + " = {0, " + rest);
    owned_.push_back(copy);
    body_.open("if (!(" + aligned(name) + ")) {");
    body_.line("const LitzTensor from = {" + name + ", " + rest);
    body_.line("if ((status = host->allocate(host->self, &" + copy + ")) != 0) break;");
    body_.line("if ((status = host->copy(host->self, &from, &" + copy + ")) != 0) break;");
    body_.line(name + " = (char*)" + copy + ".data;");
    body_.close();
    if (mutated_inputs_[id.value]) {
      copied_back_.push_back("if (" + copy + ".handle != 0) {");
      copied_back_.push_back("  LitzTensor to = {(char*)" + input + "->data, " + rest);
      copied_back_.push_back("  if ((status = host->copy(host->self, &" + copy +
                             ", &to)) != 0) break;");
      copied_back_.push_back("}");
    }
    return name;
  }

  // The host's copy on the device, asked for where the run starts.
  std::string device_constant(BufferId id) {
    const std::string bytes = constant_bytes(id);
    const std::string name = "device_" + bytes;
    if (device_constants_.emplace(id.value, true).second) {
      tensor_lines_.push_back("void* " + name + " = 0;");
      tensor_lines_.push_back("if ((status = host->constant(host->self, " + bytes + ", sizeof " +
                              bytes + ", &" + name + ")) != 0) return status;");
    }
    return "(char*)" + name;
  }

  std::string constant_bytes(BufferId id) {
    const std::string name = "c" + text(id.value);
    if (constants_.emplace(id.value, true).second) {
      std::string list;
      for (std::byte b : program_.buffer(id).bytes) list += text(std::to_integer<int>(b)) + ",";
      if (list.empty()) list = "0";
      statics_.push_back("alignas(64) static const unsigned char " + name + "[] = {" + list + "};");
    }
    return name;
  }

  std::string handle(const BufferView& view) {
    if (!whole(view)) return "0";
    const Storage& s = storage(view.buffer);
    if (s.kind == Storage::Kind::kInput) return "inputs[" + text(s.number) + "].u.tensor->handle";
    if (s.kind == Storage::Kind::kOutput || s.kind == Storage::Kind::kHost)
      return tensor_name(view.buffer) + ".handle";
    return "0";
  }

  std::string view_pointer(const BufferView& view) {
    if (view.offset.is_constant(0)) return pointer(view.buffer);
    return pointer(view.buffer) + " + " + index(view.offset * size_of(view.dtype));
  }

  // Initialiser of a LitzTensor for a window of a buffer.
  std::string tensor_initialiser(const BufferView& view) {
    if (!whole(view)) looked_into_[view.buffer.value] = true;
    return "{" + view_pointer(view) + ", " + lasting_array(view.sizes) + ", " +
           lasting_array(view.strides) + ", " + text(static_cast<int64_t>(view.sizes.size())) +
           ", " + dtype_text(view.dtype) + ", " + handle(view) + "}";
  }

  void declare_tensor(BufferId id) {
    const std::string name = tensor_name(id);
    tensor_lines_.push_back("LitzTensor " + name + " = {0, 0, 0, 0, 0, 0};");
    owned_.push_back(name);
  }

  // ---- steps ----

  void print_body() {
    const Uses uses = uses_of_memory();
    for (uint32_t step = 0; step < plan_.steps.size(); ++step) {
      for (BufferId id : uses.outputs_from[step]) allocate_output(id);
      for (KernelId kernel : kernels_of(plan_.steps[step])) {
        if (!calls_[kernel.value].function.empty())
          call_kernel(calls_[kernel.value], plan_.kernels[kernel]);
      }
      if (const auto* operation = std::get_if<OperationId>(&plan_.steps[step].v))
        call_library(*operation);
      for (uint32_t i : dying_after(step)) {
        const std::string name = tensor_name(BufferId(i));
        body_.line("host->release(host->self, &" + name + ");");
        body_.line(name + ".handle = 0;");
      }
      for (uint32_t input : uses.inputs_until[step]) {
        body_.line("if (host->drop_input != 0) host->drop_input(host->self, " + text(input) + ");");
      }
    }
    for (BufferId id : uses.outputs_from.back()) allocate_output(id);
    for (const std::string& line : copied_back_) body_.line(line);
    print_outputs();
  }

  // By step, and behind the last one.
  struct Uses {
    std::vector<std::vector<BufferId>> outputs_from;  // memory that it is the first to need
    std::vector<std::vector<uint32_t>> inputs_until;  // that it is the last to need
  };

  // Outputs take memory where they are first written, and large inputs that are nothing but read
  // may be freed where they have been: a graph of gradients never has all of both.
  Uses uses_of_memory() const {
    const size_t steps = plan_.steps.size();
    std::vector<size_t> first(program_.buffers().size(), steps);
    std::vector<size_t> last(program_.buffers().size(), steps);
    const auto use = [&](BufferId id, size_t step) {
      first[id.value] = std::min(first[id.value], step);
      last[id.value] = step;
    };
    for (size_t step = 0; step < steps; ++step) {
      for (KernelId kernel : kernels_of(plan_.steps[step])) {
        for (BufferId id : plan_.kernels[kernel].reads) use(id, step);
        for (BufferId id : plan_.kernels[kernel].writes) use(id, step);
      }
      if (const auto* id = std::get_if<OperationId>(&plan_.steps[step].v)) {
        const Operation& operation = program_.operations()[*id];
        for (BufferId read : buffers_read(operation)) use(read, step);
        for (BufferId written : buffers_written(operation)) use(written, step);
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (const auto* view = std::get_if<BufferView>(&output.v)) last[view->buffer.value] = steps;
    }
    Uses uses;
    uses.outputs_from.resize(steps + 1);
    uses.inputs_until.resize(steps + 1);
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
      const BufferId id(i);
      const Buffer& buffer = program_.buffer(id);
      if (storage(id).kind == Storage::Kind::kOutput) uses.outputs_from[first[i]].push_back(id);
      const Index elements = storage_elements(program_, buffer);
      if (storage(id).kind == Storage::Kind::kInput && last[i] < steps && !mutated_inputs_[i] &&
          !(elements.is_constant() && elements.constant() * size_of(buffer.dtype) < kLargeInput))
        uses.inputs_until[last[i]].push_back(storage(id).number);
    }
    return uses;
  }

  const std::vector<uint32_t>& dying_after(uint32_t step) {
    if (dying_.empty()) {
      dying_.resize(plan_.steps.size() + 1);
      for (uint32_t i = 0; i < program_.buffers().size(); ++i) {
        const Storage& s = storage(BufferId(i));
        if (s.kind == Storage::Kind::kHost && s.last_step < plan_.steps.size())
          dying_[s.last_step].push_back(i);
      }
    }
    return dying_[step];
  }

  void allocate_output(BufferId id) {
    declare_tensor(id);
    const Buffer& buffer = program_.buffer(id);
    const std::string name = tensor_name(id);
    body_.line(name + ".sizes = " + lasting_array(buffer.sizes) + ";");
    body_.line(name + ".strides = " + lasting_array(buffer.strides) + ";");
    body_.line(name + ".ndim = " + text(static_cast<int64_t>(buffer.sizes.size())) + ";");
    body_.line(name + ".dtype = " + dtype_text(buffer.dtype) + ";");
    body_.line("if ((status = host->allocate(host->self, &" + name + ")) != 0) break;");
  }

  void call_kernel(const KernelCall& call, const Kernel& kernel) {
    std::string line = call.function + "(host, &status";
    if (options_.on_device) line += ", ws + " + index(scratch_offset());
    std::string pointers;
    for (BufferId id : call.buffers) pointers += ", " + kernel_pointer(id);
    if (call.takes_array) {
      const std::string name = "a" + text(next_++);
      body_.line("char* " + name + "[] = {" + pointers.substr(2) + "};");
      pointers = ", " + name;
    }
    line += pointers;
    for (Index symbol : call.symbols) line += ", " + index(symbol);
    body_.line(line + ");");
    if (options_.on_device) {
      body_.line("if (status != 0) break;");
      return;
    }
    if (!call.checks_values) return;
    body_.open("if (status != 0) {");
    const std::string where = kernel.origins.empty() ? "a kernel" : kernel.origins.back();
    const auto message = [&](LitzStatus status) {
      return cpp_string_literal(std::string(failure_text(status)) + where);
    };
    body_.line("const char* message = " + message(LITZ_INDEX_OUT_OF_RANGE) + ";");
    for (const LitzStatus status : {LITZ_DIVISION_BY_ZERO, LITZ_VALUE_OUT_OF_RANGE})
      body_.line("if (status == " + text(status) + ") message = " + message(status) + ";");
    body_.line("host->fail(host->self, status, message);");
    body_.line("break;");
    body_.close();
  }

  std::string value_initialiser(const ExternArgument& argument) {
    return std::visit(
        [&](const auto& a) -> std::string {
          using T = std::decay_t<decltype(a)>;
          if constexpr (std::is_same_v<T, std::monostate>) {
            return "{0, 0, {0}}";
          } else if constexpr (std::is_same_v<T, BufferView>) {
            const std::string name = "a" + text(next_++);
            body_.line("const LitzTensor " + name + " = " + tensor_initialiser(a) + ";");
            return "{1, 0, {&" + name + "}}";
          } else if constexpr (std::is_same_v<T, Index>) {
            return "{2, 0, {.i = " + index(a) + "}}";
          } else if constexpr (std::is_same_v<T, double>) {
            return "{3, 0, {.d = " + cpp_float_literal(a, true) + "}}";
          } else if constexpr (std::is_same_v<T, bool>) {
            return std::string("{4, 0, {.i = ") + (a ? "1" : "0") + "}}";
          } else if constexpr (std::is_same_v<T, std::string>) {
            return "{5, 0, {.s = " + cpp_string_literal(a) + "}}";
          } else if constexpr (std::is_same_v<T, DType>) {
            return "{6, 0, {.i = " + dtype_text(a) + "}}";
          } else if constexpr (std::is_same_v<T, ExternDevice>) {
            return "{8, 0, {.s = " + cpp_string_literal(a.value) + "}}";
          } else if constexpr (std::is_same_v<T, ExternLayout>) {
            return "{9, 0, {.i = " + text(a.value) + "}}";
          } else if constexpr (std::is_same_v<T, ExternMemoryFormat>) {
            return "{10, 0, {.i = " + text(a.value) + "}}";
          } else {
            if (a.empty()) return "{7, 0, {.list = 0}}";
            std::string list;
            for (const ExternArgument& entry : a)
              list += (list.empty() ? "" : ", ") + value_initialiser(entry);
            return "{7, " + text(static_cast<int64_t>(a.size())) +
                   ", {.list = " + value_array(list, is_constant(a)) + "}}";
          }
        },
        argument.v);
  }

  static bool is_constant(const ExternList& list) {
    return std::all_of(list.begin(), list.end(), [](const ExternArgument& entry) {
      if (std::holds_alternative<BufferView>(entry.v)) return false;
      if (const auto* index = std::get_if<Index>(&entry.v)) return index->is_constant();
      const auto* inner = std::get_if<ExternList>(&entry.v);
      return inner == nullptr || is_constant(*inner);
    });
  }

  // The name of an array of these values: one for all equal constants, else a local of the call.
  std::string value_array(const std::string& list, bool constant) {
    if (!constant) {
      const std::string name = "l" + text(next_++);
      body_.line("const LitzValue " + name + "[] = {" + list + "};");
      return name;
    }
    const auto [found, added] =
        value_arrays_.emplace(list, "y" + text(static_cast<int64_t>(value_arrays_.size())));
    if (added)
      statics_.push_back("static const LitzValue " + found->second + "[] = {" + list + "};");
    return found->second;
  }

  void call_library(OperationId operation) {
    const ExternKernel& kernel = std::get<ExternKernel>(program_.operations()[operation].v);
    const size_t op = extern_ops_.size();
    extern_ops_.push_back(operation);
    body_.open("{");
    std::vector<std::string> arguments;
    for (const ExternArgument& argument : kernel.arguments)
      arguments.push_back(value_initialiser(argument));
    std::string list;
    for (const std::string& argument : arguments) list += (list.empty() ? "" : ", ") + argument;
    if (list.empty()) list = "{0, 0, {0}}";
    body_.line("const LitzValue args[] = {" + list + "};");
    std::string results;
    for (BufferId output : kernel.outputs) {
      if (output.valid()) {
        declare_tensor(output);
        results +=
            (results.empty() ? "" : ", ") + ("{1, 0, {.result = &" + tensor_name(output) + "}}");
      } else {
        results += std::string(results.empty() ? "" : ", ") + "{0, 0, {0}}";
      }
    }
    if (results.empty()) results = "{0, 0, {0}}";
    body_.line("LitzValue results[] = {" + results + "};");
    body_.line("if ((status = host->call(host->self, " + text(static_cast<int64_t>(op)) +
               ", args, " + text(static_cast<int64_t>(arguments.size())) + ", results, " +
               text(static_cast<int64_t>(kernel.outputs.size())) + ")) != 0) break;");
    for (BufferId output : kernel.outputs) {
      if (!output.valid()) continue;
      const Buffer& buffer = program_.buffer(output);
      const std::string name = tensor_name(output);
      body_.line(
          "if ((status = expect_layout(host, &" + name + ", " + lasting_array(buffer.sizes) + ", " +
          lasting_array(buffer.strides) + ", " + text(static_cast<int64_t>(buffer.sizes.size())) +
          ", " + dtype_text(buffer.dtype) + ", " + is_borrowed(operation, name) + ", " +
          cpp_string_literal(kernel.name + " (node " + kernel.node +
                             ") returned a tensor of another shape or dtype than was traced") +
          ")) != 0) break;");
    }
    body_.close();
  }

  // A number, such as the state of random numbers that attention leaves for its gradient: PyTorch
  // takes these from any device.
  bool is_passed_on(BufferId input) const {
    return !looked_into_[input.value] && program_.buffer(input).sizes.empty();
  }

  // Whether a result of the library is in memory that the run will use for something else.
  std::string is_borrowed(OperationId operation, const std::string& result) {
    const ExternKernel& kernel = std::get<ExternKernel>(program_.operations()[operation].v);
    if (kernel.results_are_views) return "true";
    std::string condition;
    const auto add = [&](const std::string& begin, Index bytes) {
      if (!condition.empty()) condition += " || ";
      condition += "(unsigned long long)((char*)" + result + ".data - " + begin + ") < " +
                   "(unsigned long long)" + index(bytes);
    };
    if (kernel.results_may_alias) {
      if (!plan_.workspace_bytes.is_constant(0)) add("ws", plan_.workspace_bytes);
      for (BufferId id : buffers_read(program_.operations()[operation])) {
        if (storage(id).kind == Storage::Kind::kTaken) add(pointer(id), storage(id).size_bytes);
      }
    }
    return condition.empty() ? "false" : condition;
  }

  // ---- outputs ----

  void print_outputs() {
    std::map<uint32_t, uint32_t> moved;  // buffer -> output that owns its tensor
    std::vector<std::string> hand_over;
    for (uint32_t i = 0; i < program_.outputs.size(); ++i) {
      const std::string out = "outputs[" + text(i) + "]";
      const ProgramOutput& output = program_.outputs[i];
      if (const auto* integer = std::get_if<Index>(&output.v)) {
        body_.line(out + ".kind = 2;");
        body_.line(out + ".u.i = " + index(*integer) + ";");
        continue;
      }
      const auto* view = std::get_if<BufferView>(&output.v);
      if (view == nullptr) {
        body_.line(out + ".kind = 0;");
        continue;
      }
      const Storage& s = storage(view->buffer);
      if (s.kind == Storage::Kind::kInput && whole(*view)) {
        body_.line(out + ".kind = 11;");
        body_.line(out + ".u.i = " + text(s.number) + ";");
        continue;
      }
      const bool owned = s.kind == Storage::Kind::kOutput || s.kind == Storage::Kind::kHost;
      const auto before = moved.find(view->buffer.value);
      if (owned && whole(*view) && before != moved.end()) {
        body_.line(out + ".kind = 12;");
        body_.line(out + ".u.i = " + text(before->second) + ";");
        continue;
      }
      const std::string tensor = "output_tensors[" + text(i) + "]";
      body_.line(out + ".kind = 1;");
      body_.line(out + ".u.tensor = &" + tensor + ";");
      if (owned && whole(*view)) {
        // Views of it are made first.
        moved[view->buffer.value] = i;
        hand_over.push_back(tensor + " = " + tensor_name(view->buffer) + ";");
        hand_over.push_back(tensor_name(view->buffer) + ".handle = 0;");
        continue;
      }
      const std::string name = "v" + text(i);
      tensor_lines_.push_back("LitzTensor " + name + " = {0, 0, 0, 0, 0, 0};");
      owned_.push_back(name);
      std::string initialiser = tensor_initialiser(*view);
      body_.line(name + " = LitzTensor" + initialiser + ";");
      body_.line(name + ".handle = 0;");
      if (s.kind == Storage::Kind::kConstant) {
        body_.line("{");
        body_.line("  const LitzTensor from = " + name + ";");
        body_.line("  if ((status = host->allocate(host->self, &" + name + ")) != 0) break;");
        body_.line("  if ((status = host->copy(host->self, &from, &" + name + ")) != 0) break;");
        body_.line("}");
      } else {
        const std::string base = s.kind == Storage::Kind::kInput
                                     ? "inputs[" + text(s.number) + "].u.tensor"
                                     : "&" + tensor_name(view->buffer);
        body_.line("if ((status = host->view(host->self, " + base + ", &" + name +
                   ")) != 0) break;");
      }
      hand_over.push_back(tensor + " = " + name + ";");
      hand_over.push_back(name + ".handle = 0;");
    }
    for (const std::string& line : hand_over) body_.line(line);
  }

  // ---- entry points ----

  void print_run(IndentedBuffer& t) {
    t.line(
        "LITZ_PLAIN static int run(const LitzHost* host, const LitzValue* inputs, LitzValue* "
        "outputs,");
    t.open("               LitzTensor* output_tensors, i64* shapes, void* workspace) {");
    t.line("char* const ws = (char*)workspace;");
    t.line("i64 s[" + text(symbol_slots()) + "];");
    t.line("read_symbols(inputs, s);");
    t.line("(void)ws; (void)shapes; (void)outputs; (void)output_tensors; (void)host;");
    t.line("i32 status = 0;");
    for (const InputCheck& check : binding_.checks) {
      if (has_extent(check.expected)) continue;
      const std::string number = number_text(check.number);
      t.open("if (" + number + " != " + index(check.expected) + ") {");
      t.line("host->fail(host->self, 1, " +
             cpp_string_literal(describe(program_, check.number) +
                                " is not what the graph was compiled for (" +
                                to_string(check.expected) + ")") +
             ");");
      t.line("return 1;");
      t.close();
    }
    for (const std::string& line : shape_lines_) t.line(line);
    for (const std::string& line : tensor_lines_) t.line(line);
    t.line("do {");
    t.append(body_);
    t.line("} while (false);");
    // What was not handed over: on failure everything, else what only views look into.
    for (const std::string& name : owned_)
      t.line("if (" + name + ".handle != 0) host->release(host->self, &" + name + ");");
    t.line("return status;");
    t.close();
    t.line("");
  }

  bool has_extent(Index e) const { return e.is_constant() || e.is_symbol(); }

  std::string extent(Index e) const {
    if (e.is_constant()) return text(e.constant());
    if (e.is_symbol()) return text(-2 - static_cast<int64_t>(symbol_number(e)));
    return "-1";
  }

  std::string extents(const std::vector<Index>& values, IndentedBuffer& t,
                      const std::string& name) {
    if (values.empty()) return "0";
    std::string list;
    for (Index v : values) list += (list.empty() ? "" : ", ") + extent(v);
    t.line("static const i64 " + name + "[] = {" + list + "};");
    return name;
  }

  void print_description(IndentedBuffer& t) {
    std::string specs;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Program::Input& input = program_.inputs[i];
      const std::string number = text(static_cast<int64_t>(i));
      const std::string name = cpp_string_literal(input.name);
      if (!input.buffer.valid()) {
        const std::string value = extents({input.integer}, t, "input" + number + "_value");
        specs += "  {" + name + ", 2, 0, 0, 0, " + value + ", 0, 0},\n";
        continue;
      }
      const Buffer& buffer = program_.buffer(input.buffer);
      const std::string sizes = extents(buffer.sizes, t, "input" + number + "_sizes");
      const std::string strides = extents(buffer.strides, t, "input" + number + "_strides");
      specs += "  {" + name + ", 1, " + dtype_text(buffer.dtype) + ", " +
               text(static_cast<int64_t>(buffer.sizes.size())) + ", " +
               (mutated_inputs_[input.buffer.value] ? "1" : "0") + ", " + sizes + ", " + strides +
               (is_passed_on(input.buffer) ? ", 1},\n" : ", 0},\n");
    }
    if (specs.empty()) specs = "  {0, 0, 0, 0, 0, 0, 0, 0},\n";
    t.line("static const LitzInputSpec input_specs[] = {\n" + specs + "};");
    std::string ops;
    for (OperationId id : extern_ops_) {
      const ExternKernel& kernel = std::get<ExternKernel>(program_.operations()[id].v);
      ops += "  {" + cpp_string_literal(kernel.name) + ", " + cpp_string_literal(kernel.overload) +
             ", " + cpp_string_literal(kernel.node) + "},\n";
    }
    if (ops.empty()) ops = "  {0, 0, 0},\n";
    t.line("static const LitzExternOp extern_ops[] = {\n" + ops + "};");
    t.line("extern \"C\" {");
    t.line("extern const LitzArtifact litz_artifact __attribute__((visibility(\"default\")));");
    t.line("}");
    t.line("const LitzArtifact litz_artifact = {" + text(LITZ_ABI_VERSION) + ", " +
           text(static_cast<int64_t>(program_.inputs.size())) + ", " +
           text(static_cast<int64_t>(program_.outputs.size())) + ", " +
           text(static_cast<int64_t>(extern_ops_.size())) + ", " +
           text(static_cast<int64_t>(binding_.sources.size())) + ", input_specs, extern_ops,");
    t.line("  " + cpp_string_literal(options_.description) + ", workspace_bytes, run, " +
           text(shapes_count_) + ", " + (options_.on_device ? "&device_code" : "0") + "};");
  }

  const Plan& plan_;
  const Program& program_;
  const std::vector<KernelCall>& calls_;
  Prelude& prelude_;
  const CppRunOptions& options_;
  SymbolBinding binding_;
  std::vector<bool> mutated_inputs_;
  std::vector<bool> unaligned_inputs_;
  std::vector<bool> looked_into_;  // buffers that not only library ops are given as they are
  IndentedBuffer body_;
  std::vector<std::string> statics_;
  std::vector<std::string> shape_lines_;
  std::vector<std::string> tensor_lines_;
  std::vector<std::string> owned_;
  std::vector<std::string> copied_back_;
  std::map<std::string, std::string> arrays_;
  std::map<std::string, std::string> value_arrays_;
  std::map<std::string, int64_t> shape_slots_;
  std::map<uint32_t, bool> constants_;
  std::map<uint32_t, bool> device_constants_;
  std::map<uint32_t, bool> aligned_inputs_;
  std::vector<std::vector<uint32_t>> dying_;
  std::vector<OperationId> extern_ops_;
  int64_t shapes_count_ = 0;
  int64_t next_ = 0;
};

}  // namespace

std::vector<bool> mutated_inputs(const Program& program) {
  std::vector<bool> mutated(program.buffers().size(), false);
  for (const Operation& operation : program.operations()) {
    for (BufferId written : buffers_written(operation)) {
      if (program.buffer(written).kind == BufferKind::kInput) mutated[written.value] = true;
    }
  }
  return mutated;
}

std::vector<bool> unaligned_inputs(const Program& program) {
  std::vector<bool> unaligned = mutated_inputs(program);
  std::vector<bool> shared(program.buffers().size(), false);
  for (const Operation& operation : program.operations()) {
    if (!std::holds_alternative<ExternKernel>(operation.v)) continue;
    for (BufferId buffer : buffers_read(operation)) shared[buffer.value] = true;
    for (BufferId buffer : buffers_written(operation)) shared[buffer.value] = true;
  }
  for (uint32_t i = 0; i < unaligned.size(); ++i) {
    if (!unaligned[i] || shared[i]) continue;
    // What lies between the elements may be another tensor's.
    const Buffer& buffer = program.buffer(BufferId(i));
    unaligned[i] = storage_elements(program, buffer) != product(program.indices(), buffer.sizes);
  }
  return unaligned;
}

CppRun print_cpp_run(const Plan& plan, const std::vector<KernelCall>& calls, Prelude& prelude,
                     const CppRunOptions& options) {
  return RunPrinter(plan, calls, prelude, options).print();
}

}  // namespace litz
