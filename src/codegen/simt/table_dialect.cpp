#include "codegen/simt/table_dialect.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/error.h"

namespace litz {
namespace {

using prelude::Fragment;
using prelude::Shape;

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32, DType::kInt64,  DType::kInt32,
                            DType::kInt16,   DType::kInt8,    DType::kUInt64, DType::kUInt32,
                            DType::kUInt16,  DType::kUInt8};

// What the prelude has in C++ alone, or for the CPU.
constexpr Fragment kOwn[] = {
    {"sigmoid", "\nLITZ_INLINE @V @N(@V x) { return 1.0@F / (1.0@F + @{exp}(-x)); }\n"},
};
constexpr std::string_view kIntegerNeg =
    "\nLITZ_INLINE @V @N(@V x) { return (@V)((@A)0 - (@A)x); }\n";

// Functions of floats whose common text is C and needs nothing that a device may lack.
constexpr std::string_view kCommon[] = {
    "add",       "sub",   "mul",    "neg",     "abs",   "flip_sign",  "copysign",  "sign",
    "min",       "max",   "lesser", "greater", "rsqrt", "reciprocal", "trunc_div", "remainder",
    "floor_div", "round", "floor",  "ceil",    "trunc", "fma",        "from_int",  "from_mask"};

// Whether a list of words separated by spaces has the word.
bool lists(std::string_view words, std::string_view word) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

SimtWords words_of(const LitzDialect& table) {
  SimtWords words;
  words.kernel = replace_all(replace_all(table.kernel, "$threads", "THREADS"), "$name", "NAME");
  const auto spaced = [](const char* text) {
    return text == nullptr || *text == '\0' ? std::string() : std::string(text) + " ";
  };
  words.global = spaced(table.global_space);
  words.local = spaced(table.local_space);
  words.block[0] = table.block_x;
  words.block[1] = table.block_y;
  words.thread = table.thread;
  words.barrier = table.barrier == nullptr ? "" : table.barrier;
  words.unroll = spaced(table.unroll);
  words.unroll_some = words.unroll;
  if (table.shuffle != nullptr) words.shuffle = table.shuffle;
  words.int64_suffix = table.int64_suffix;
  words.status_in_arguments = true;
  return words;
}

}  // namespace

TableDialect::TableDialect(const LitzDialect& table, std::string without)
    : SimtDialect(words_of(table)), table_(table), without_(std::move(without)) {}

std::string TableDialect::type_text(DType dtype) const {
  if (lists(without_, to_string(dtype))) return "";
  for (int32_t i = 0; i < table_.num_types; ++i) {
    if (to_string(dtype) == table_.types[i].dtype) return table_.types[i].type;
  }
  return "";
}

bool TableDialect::has_type(DType dtype) const { return !type_text(dtype).empty(); }

std::string TableDialect::scalar_types() const {
  std::string text;
  for (DType dtype : kTypes) {
    const std::string type = type_text(dtype);
    if (!type.empty()) text += "typedef " + type + " " + std::string(to_string(dtype)) + ";\n";
  }
  return text;
}

std::string TableDialect::header() const {
  return std::string(table_.prelude) +
         "\n#define LITZ_INLINE static inline\n#define LITZ_COLD static\n";
}

std::string TableDialect::helpers() const {
  std::string text = "#define __builtin_bit_cast(T, x) litz_as_##T(x)\n";
  for (DType dtype : kTypes) {
    const std::string type = type_text(dtype);
    if (!type.empty())
      text += "#define litz_as_" + std::string(to_string(dtype)) + "(x) (" +
              replace_all(table_.bit_cast, "$type", type) + ")\n";
  }
  // Functions, because the words may be macros that end in the names defined here.
  text += "LITZ_INLINE f32 litz_infinity(void) { return " + std::string(table_.infinity) + "; }\n";
  text += "LITZ_INLINE f32 litz_nan(void) { return " + std::string(table_.nan) + "; }\n";
  text +=
      "#define __builtin_inff() litz_infinity()\n#define __builtin_nanf(x) litz_nan()\n"
      "#define __builtin_inf() ((f64)litz_infinity())\n#define __builtin_nan(x) "
      "((f64)litz_nan())\n";
  return text +
         replace_all(
             R"(LITZ_INLINE void check_failed(@Gi32* status, i32 failure) { *status = failure; }
LITZ_INLINE i64 checked_index(i64 value, i64 extent, @Gi32* status, i32 failure) {
  if ((u64)value < (u64)extent) return value;
  if (status) check_failed(status, failure);
  return 0;
}
)",
             "@G", words().global);
}

std::string TableDialect::row_text(std::string_view name, DType dtype) const {
  for (int32_t i = 0; i < table_.num_functions; ++i) {
    const LitzFunctionRow& row = table_.functions[i];
    if (lists(row.names, name) && lists(row.dtypes, to_string(dtype)))
      return replace_all(row.text, "$", name);
  }
  return "";
}

std::string TableDialect::fragment(std::string_view name, Shape shape) const {
  LITZ_CHECK(shape.scalar(), "a vector in a dialect of scalars");
  if (name == "load") {
    return replace_all("\nLITZ_INLINE @V @N(const @Gvoid* p) { return *(const @G@V*)p; }\n", "@G",
                       words().global);
  }
  if (name == "store") {
    return replace_all("\nLITZ_INLINE void @N(@Gvoid* p, @V v) { *(@G@V*)p = v; }\n", "@G",
                       words().global);
  }
  if (const std::string row = row_text(name, shape.dtype); !row.empty()) {
    std::string parameters;
    const int count = prelude::operands_of(name);
    for (int i = 0; i < count; ++i)
      parameters += std::string(i == 0 ? "" : ", ") + "@V " + "xyz"[i];
    return "\nLITZ_INLINE @V @N(" + parameters + ") { return " + row + "; }\n";
  }
  if (is_integral(shape.dtype)) return name == "neg" ? std::string(kIntegerNeg) : "";
  return prelude::find(kOwn, name);
}

// Out of range and NaN give the smallest value, as on a CPU.
std::string TableDialect::conversion(std::string_view name, Shape from, DType to) const {
  if (name == "from_f16" || name == "bits_f16") {
    // The common text adds constants to vectors of zeros.
    return replace_all(prelude::convert_fragment(PreludeTarget{}, name, from, to), "@T{u32}{} + ",
                       "");
  }
  if (!is_floating(from.dtype)) return "";
  const std::string head = "\nLITZ_INLINE @T{TO} @N(@V x) {\n  return ";
  if (to == DType::kInt32)
    return prelude::replace_to(head +
                                   "x > -2147483649.0@F && x < 2147483648.0@F ? (i32)x : "
                                   "-2147483647 - 1;\n}\n",
                               to);
  if (to == DType::kInt64)
    return prelude::replace_to(
        head +
            "x >= -9223372036854775808.0@F && x < 9223372036854775808.0@F ? (i64)x : "
            "-9223372036854775807" +
            words().int64_suffix + " - 1;\n}\n",
        to);
  return "";
}

bool TableDialect::takes_common(std::string_view name, DType dtype) const {
  return is_integral(dtype) ||
         std::find(std::begin(kCommon), std::end(kCommon), name) != std::end(kCommon);
}

std::string TableDialect::pack() const { return ""; }
std::string TableDialect::pack_access(std::string_view, std::string_view, Shape) const {
  return "";
}

std::string TableDialect::missing_atomic(DType memory) const {
  if (table_.compare_exchange == nullptr) return "changes of memory that threads share";
  if (size_of(memory) == 8)
    return "changes of " + std::string(torch_name(memory)) + " memory that threads share";
  return "";
}

std::string TableDialect::atomic_helper() const {
  if (table_.compare_exchange == nullptr) return "";
  return "\nLITZ_INLINE u32 litz_exchange(volatile " + words().global +
         "u32* p, u32 expected, u32 desired) { return " + table_.compare_exchange + "; }\n";
}

// Compare and swap of the aligned word that holds the element.
std::string TableDialect::atomic(const std::string& own, const std::string& combine,
                                 const std::string& load, const std::string& store,
                                 const std::string& value, const std::string& memory) const {
  const bool is_word = memory == "i32" || memory == "u32" || memory == "f32";
  const std::string bits = memory == "f32" ? "f32" : "u32";
  std::string text = "void " + own + "(" + words().global + "void* p, " + value + " x) {\n";
  const std::string next = store + "(" + combine + "(" + load + "(" +
                           (is_word ? "__builtin_bit_cast(" + memory + ", old)"
                                    : "(" + memory + ")((old & mask) >> shift)") +
                           "), x))";
  if (is_word) {
    text += "  volatile " + words().global + "u32* const word = (volatile " + words().global +
            "u32*)p;\n";
  } else {
    text += "  volatile " + words().global + "u32* const word = (volatile " + words().global +
            "u32*)((u64)p & ~(u64)3);\n  const u32 shift = (u32)((u64)p & 3) * 8;\n"
            "  const u32 mask = " +
            (memory == "u8" || memory == "i8" ? "0xffu" : "0xffffu") + " << shift;\n";
  }
  text += "  u32 old = *word;\n  for (;;) {\n    const u32 next = ";
  text += is_word ? "__builtin_bit_cast(u32, " + next + ")"
                  : "(old & ~mask) | (((u32)" + next + " << shift) & mask)";
  return text +
         ";\n    const u32 seen = litz_exchange(word, old, next);\n    if (seen == old) return;\n"
         "    old = seen;\n  }\n}";
}

ThreadHeuristics read_heuristics(const LitzBackend& backend, const LitzBackendDevice* device) {
  ThreadHeuristics heuristics;
  const LitzHeuristics& given = backend.heuristics;
  const auto set = [](auto& field, auto value) {
    if (value != 0) field = value;
  };
  set(heuristics.warp, given.warp);
  set(heuristics.block, given.block);
  set(heuristics.most_group, given.most_group);
  set(heuristics.column_width, given.column_width);
  set(heuristics.most_column_group, given.most_column_group);
  set(heuristics.turns, int64_t{given.turns});
  set(heuristics.thread_row, given.thread_row);
  set(heuristics.warp_row, given.warp_row);
  set(heuristics.kept_elements, given.kept_elements);
  set(heuristics.few_blocks, given.few_blocks);
  set(heuristics.many_blocks, given.many_blocks);
  set(heuristics.long_row, given.long_row);
  heuristics.vector_bytes = 0;
  if (backend.dialect->local_space == nullptr) {
    heuristics.local_memory = false;
    heuristics.most_group = 1;
    heuristics.most_column_group = 1;
  }
  if (backend.choose_threads != nullptr) {
    heuristics.choose = [choose = backend.choose_threads, device](const ThreadShape& shape,
                                                                  ThreadPlan& p) {
      const LitzKernelShape given_shape = {shape.rows, shape.row_length, shape.stages,
                                           shape.reductions, p.columns ? 1 : 0};
      LitzThreadChoice choice = {p.group, p.groups};
      choose(device, &given_shape, &choice);
      p.group = choice.group;
      p.groups = choice.groups;
    };
  }
  return heuristics;
}

}  // namespace litz
