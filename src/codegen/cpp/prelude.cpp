#include "codegen/cpp/prelude.h"

#include <algorithm>
#include <optional>

#include "codegen/cpp/prelude_fragments.h"
#include "codegen/simt/simt_dialect.h"
#include "support/error.h"

namespace litz {
namespace {

using prelude::Shape;

struct FnRow {
  std::string_view spelling;
  int operands;
};

constexpr FnRow kFns[] = {
#define LITZ_PRELUDE_FN_ROW(name, spelling, operands, meaning) {spelling, operands},
    LITZ_PRELUDE_FNS(LITZ_PRELUDE_FN_ROW)
#undef LITZ_PRELUDE_FN_ROW
};

constexpr std::string_view kHeader =
    R"(#define LITZ_INLINE static inline __attribute__((always_inline, unused))
#define LITZ_COLD static __attribute__((noinline, cold))
#ifdef __clang__
#define LITZ_HAS(x) __has_builtin(x)
#else
#define LITZ_HAS(x) 0
#endif
)";

constexpr std::string_view kScalars = R"(typedef float f32;
typedef double f64;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
)";

constexpr std::string_view kPack = R"(template <class H>
struct litz_pack {
  H a, b;
};
// The scalar's own type is not deduced: an int literal becomes a lane of whatever width.
template <class T>
struct litz_lane {
  using type = __typeof__((*(T*)0)[0]);
};
template <class H>
struct litz_lane<litz_pack<H>> : litz_lane<H> {};
#define LITZ_PACK_OP(op)                                                                      \
  template <class H>                                                                          \
  LITZ_INLINE auto operator op(litz_pack<H> x, litz_pack<H> y) {                              \
    return litz_pack<decltype(x.a op y.a)>{x.a op y.a, x.b op y.b};                           \
  }                                                                                           \
  template <class H>                                                                          \
  LITZ_INLINE auto operator op(litz_pack<H> x, typename litz_lane<H>::type y) {               \
    return litz_pack<decltype(x.a op y)>{x.a op y, x.b op y};                                 \
  }                                                                                           \
  template <class H>                                                                          \
  LITZ_INLINE auto operator op(typename litz_lane<H>::type x, litz_pack<H> y) {               \
    return litz_pack<decltype(x op y.a)>{x op y.a, x op y.b};                                 \
  }
LITZ_PACK_OP(+)
LITZ_PACK_OP(-)
LITZ_PACK_OP(*)
LITZ_PACK_OP(/)
LITZ_PACK_OP(&)
LITZ_PACK_OP(|)
LITZ_PACK_OP(^)
LITZ_PACK_OP(<<)
LITZ_PACK_OP(>>)
LITZ_PACK_OP(<)
LITZ_PACK_OP(<=)
LITZ_PACK_OP(>)
LITZ_PACK_OP(>=)
LITZ_PACK_OP(==)
LITZ_PACK_OP(!=)
template <class H>
LITZ_INLINE litz_pack<H> operator-(litz_pack<H> x) {
  return {-x.a, -x.b};
}
template <class H>
LITZ_INLINE litz_pack<H> operator~(litz_pack<H> x) {
  return {~x.a, ~x.b};
}
)";

constexpr std::string_view kSelect = R"(
template <class M, class T>
LITZ_INLINE T select(M m, T x, T y) {
  return m ? x : y;
}
)";
constexpr std::string_view kSelectPack = R"(
template <class M, class H>
LITZ_INLINE litz_pack<H> select(litz_pack<M> m, litz_pack<H> x, litz_pack<H> y) {
  return {select(m.a, x.a, y.a), select(m.b, x.b, y.b)};
}
)";

int bytes_of(DType dtype) { return static_cast<int>(size_of(dtype)); }

// The dtype whose type holds values of `dtype` in registers.
DType register_dtype(DType dtype) { return is_half(dtype) ? DType::kFloat32 : dtype; }

// The dtype whose bits are in memory.
DType storage_dtype(DType dtype) {
  if (is_half(dtype)) return DType::kUInt16;
  return dtype == DType::kBool ? DType::kUInt8 : dtype;
}

std::string shape_name(DType dtype, int lanes) {
  std::string name(to_string(dtype));
  if (lanes > 1) name += "x" + std::to_string(lanes);
  return name;
}

}  // namespace

int prelude::operands_of(std::string_view name) {
  for (const FnRow& row : kFns) {
    if (row.spelling == name) return row.operands;
  }
  for (std::string_view binary :
       {"and", "or", "lesser", "greater", "flip_sign", "hypot_f32", "pow_f32"}) {
    if (binary == name) return 2;
  }
  return 1;
}

namespace {

std::optional<DType> conversion_target(std::string_view name) {
  if (name == "from_f16" || name == "from_bf16") return DType::kFloat32;
  if (name == "bits_f16" || name == "bits_bf16" || name == "high_bf16" || name == "flushed_bf16")
    return DType::kUInt16;
  if (name.starts_with("to_")) return parse_dtype(name.substr(3));
  return std::nullopt;
}

// The end of the bracket that opens at `at`.
size_t closing(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  throw_internal("bracket closes", __FILE__, __LINE__, std::string(text));
}

}  // namespace

std::string_view prelude::scalar_types() { return kScalars; }

std::string_view to_string(PreludeFn fn) { return kFns[static_cast<int>(fn)].spelling; }
int operand_count(PreludeFn fn) { return kFns[static_cast<int>(fn)].operands; }

bool supports(PreludeFn fn, DType dtype) {
  if (dtype == DType::kBool || !is_native(dtype)) return false;
  if (fn == PreludeFn::kShiftLeft || fn == PreludeFn::kShiftRight) return is_integral(dtype);
  return is_floating(dtype) || fn < PreludeFn::kShiftLeft;
}

Prelude::Prelude(const PreludeTarget& target) : target_(target) {
  LITZ_CHECK(target.device != nullptr || target.vector_bytes == 16 ||
                 (target.vector_bytes == 32 && target.avx2) ||
                 (target.vector_bytes == 64 && target.avx512 && target.avx2),
             "vector width " + std::to_string(target.vector_bytes) + " needs its instruction set");
}

std::string Prelude::type(DType dtype, int lanes) {
  LITZ_CHECK(lanes >= 1 && lanes <= 64 && (lanes & (lanes - 1)) == 0,
             "lanes " + std::to_string(lanes));
  if (dtype == DType::kBool) return lanes == 1 ? "bool" : type(DType::kInt8, lanes);
  dtype = register_dtype(dtype);
  if (target_.device != nullptr && !target_.device->has_type(dtype))
    add_missing(std::string(torch_name(dtype)) + " values");
  const std::string name = shape_name(dtype, lanes);
  if (lanes == 1 || !defined_.insert(name).second) return name;
  const int bytes = bytes_of(dtype) * lanes;
  if (is_pack(bytes_of(dtype), lanes)) {
    const std::string half = type(dtype, lanes / 2);
    if (defined_.insert("litz_pack").second) {
      types_ += target_.device != nullptr ? target_.device->pack() : std::string(kPack);
      if (defined_.contains("select")) body_ += kSelectPack;
    }
    types_ += "typedef litz_pack<" + half + "> " + name + ";\n";
  } else {
    types_ += "typedef " + std::string(to_string(dtype)) + " " + name +
              " __attribute__((vector_size(" + std::to_string(bytes) + ")));\n";
  }
  return name;
}

std::string Prelude::type_mask(int bytes, int lanes) {
  return lanes == 1 ? "bool" : type(integer_of_bytes(bytes), lanes);
}

std::string Prelude::expand(std::string_view text, std::string_view own_name, std::string_view base,
                            DType dtype, int lanes) {
  const int bytes = bytes_of(dtype);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@') {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'N':
        out += own_name;
        break;
      case 'V':
        out += type(dtype, lanes);
        break;
      case 'S':
        out += to_string(dtype);
        break;
      case 'I':
        out += type(integer_of_bytes(bytes), lanes);
        break;
      case 'U':
        out += type(integer_of_bytes(bytes, false), lanes);
        break;
      case 'A':
        out += lanes == 1 && bytes < 4 ? "u32" : type(integer_of_bytes(bytes, false), lanes);
        break;
      case 'Z':
        out += to_string(integer_of_bytes(bytes));
        break;
      case 'X':
        out += to_string(integer_of_bytes(bytes, false));
        break;
      case 'M':
        out += type_mask(bytes, lanes);
        break;
      case 'n':
        out += std::to_string(lanes);
        break;
      case 'b':
        out += std::to_string(8 * bytes);
        break;
      case 'F':
        out += dtype == DType::kFloat32 ? "f" : "";
        break;
      case 'J':
      case 'K': {
        const DType constant_dtype = text[i] == 'K' ? dtype : integer_of_bytes(bytes, false);
        const size_t end = closing(text, i + 1);
        const std::string value = expand(text.substr(i + 1, end - i), own_name, base, dtype, lanes);
        out += lanes == 1 ? value : "(" + type(constant_dtype, lanes) + "{} + " + value + ")";
        i = end;
        break;
      }
      case 'T': {
        const size_t end = text.find('}', i);
        out += type(*parse_dtype(text.substr(i + 2, end - i - 2)), lanes);
        i = end;
        break;
      }
      case '{': {
        const size_t end = text.find('}', i);
        std::string_view name = text.substr(i + 1, end - i - 1);
        std::string_view where;
        if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
          where = name.substr(colon + 1);
          name = name.substr(0, colon);
        }
        if (name == "self") name = base;
        const DType other = where.empty() || where == "lane" ? dtype : *parse_dtype(where);
        out += require(name, other, where == "lane" ? 1 : lanes);
        i = end;
        break;
      }
      default:
        throw_internal("token", __FILE__, __LINE__, std::string(text));
    }
  }
  return out;
}

// The definition from its two halves where the value is a pack, else from its fragment.
std::string Prelude::require(std::string_view name, DType dtype, int lanes) {
  if (const std::optional<DType> to = conversion_target(name)) {
    return require_conversion(name, dtype, *to, lanes);
  }
  std::string own = std::string(name) + "_" + shape_name(dtype, lanes);
  if (!defined_.insert(own).second) return own;
  const std::string value = type(dtype, lanes);
  if (is_pack(bytes_of(dtype), lanes)) {
    body_ += pack_definition(name, own, dtype, lanes);
    return own;
  }
  const std::string text = fragment(name, dtype, lanes);
  const std::string expanded = expand(text, own, name, dtype, lanes);
  body_ += expanded;
  return own;
}

std::string Prelude::fragment(std::string_view name, DType dtype, int lanes) {
  const Shape shape{dtype, lanes};
  std::string text;
  if (target_.device != nullptr) {
    text = target_.device->fragment(name, shape);
    if (text.empty() && !target_.device->takes_common(name, dtype)) {
      add_missing(std::string(name) + " of " + std::string(torch_name(dtype)));
      return text;
    }
  }
  if (text.empty()) text = prelude::memory_fragment(target_, name, shape);
  if (text.empty()) {
    if (dtype == DType::kFloat32) text = prelude::float32_fragment(target_, name, lanes);
    if (dtype == DType::kFloat64) text = prelude::float64_fragment(target_, name);
    if (is_integral(dtype)) text = prelude::integer_fragment(name, shape);
  }
  if (text.empty()) text = prelude::basic_fragment(target_, name, shape);
  if (text.empty() && is_floating(dtype)) text = prelude::library_fragment(name, shape);
  LITZ_CHECK(!text.empty(),
             "no fragment for " + std::string(name) + "_" + shape_name(dtype, lanes));
  return text;
}

void Prelude::add_missing(std::string what) {
  if (std::find(missing_.begin(), missing_.end(), what) == missing_.end())
    missing_.push_back(std::move(what));
}

std::string Prelude::global() const {
  return target_.device == nullptr ? std::string() : target_.device->words().global;
}

std::string_view Prelude::int64_suffix() const {
  return target_.device == nullptr ? "LL" : std::string_view(target_.device->words().int64_suffix);
}

std::string Prelude::pack_definition(std::string_view name, const std::string& own, DType dtype,
                                     int lanes) {
  const std::string value = type(dtype, lanes);
  const std::string mask = type_mask(bytes_of(dtype), lanes);
  const std::string scalar(to_string(dtype));
  const std::string half_lanes = std::to_string(lanes / 2);
  const std::string half_bytes = std::to_string(lanes / 2 * bytes_of(dtype));
  const std::string head = "\nLITZ_INLINE ";
  if (name == "load_tail" || name == "store_tail") {
    const std::string whole = require(name.substr(0, name.find('_')), dtype, lanes / 2);
    const std::string part = require(name, dtype, lanes / 2);
    if (name == "load_tail") {
      return head + value + " " + own + "(const void* p, i64 n) {\n  if (n < " + half_lanes +
             ") return {" + part + "(p, n), " + type(dtype, lanes / 2) +
             "{}};\n  const char* q = (const char*)p + " + half_bytes + ";\n  return {" + whole +
             "(p), n > " + half_lanes + " ? " + part + "(q, n - " + half_lanes +
             ") : " + type(dtype, lanes / 2) + "{}};\n}\n";
    }
    return head + "void " + own + "(void* p, " + value + " v, i64 n) {\n  if (n < " + half_lanes +
           ") return " + part + "(p, v.a, n);\n  " + whole + "(p, v.a);\n  if (n > " + half_lanes +
           ") " + part + "((char*)p + " + half_bytes + ", v.b, n - " + half_lanes + ");\n}\n";
  }
  if (name.starts_with("reduce_")) {
    const std::string half = require(name, dtype, lanes / 2);
    const std::string combine = require(name.substr(7), dtype, lanes / 2);
    return head + scalar + " " + own + "(" + value + " x) { return " + half + "(" + combine +
           "(x.a, x.b)); }\n";
  }
  const std::string half = require(name, dtype, lanes / 2);
  if (target_.device != nullptr && (name == "load" || name == "store"))
    return target_.device->pack_access(name, half, Shape{dtype, lanes});
  if (name == "load") {
    return head + value + " " + own + "(const void* p) { return {" + half + "(p), " + half +
           "((const char*)p + " + half_bytes + ")}; }\n";
  }
  if (name == "store" || name == "store_stream") {
    return head + "void " + own + "(void* p, " + value + " v) {\n  " + half + "(p, v.a);\n  " +
           half + "((char*)p + " + half_bytes + ", v.b);\n}\n";
  }
  if (name == "splat") {
    return head + value + " " + own + "(" + scalar + " x) { return {" + half + "(x), " + half +
           "(x)}; }\n";
  }
  if (name == "iota") {
    return head + value + " " + own + "(" + scalar + " x) { return {" + half + "(x), " + half +
           "((" + scalar + ")(x + " + half_lanes + "))}; }\n";
  }
  if (name == "first_lanes") {
    return head + mask + " " + own + "(i64 n) { return {" + half + "(n), " + half + "(n - " +
           half_lanes + ")}; }\n";
  }
  if (name == "any_mask") {
    return head + "bool " + own + "(" + mask + " m) { return " + half + "(m.a | m.b); }\n";
  }
  if (name == "from_mask") {
    return head + value + " " + own + "(" + mask + " m) { return {" + half + "(m.a), " + half +
           "(m.b)}; }\n";
  }
  std::string params;
  std::string low;
  std::string high;
  for (int i = 0; i < prelude::operands_of(name); ++i) {
    const std::string x(1, "xyz"[i]);
    const std::string comma = i == 0 ? "" : ", ";
    params += comma + value + " " + x;
    low += comma + x + ".a";
    high += comma + x + ".b";
  }
  return head + value + " " + own + "(" + params + ") { return {" + half + "(" + low + "), " +
         half + "(" + high + ")}; }\n";
}

std::string Prelude::half_of(std::string_view value, DType dtype, int lanes, bool high) {
  if (is_pack(bytes_of(dtype), lanes)) return std::string(value) + (high ? ".b" : ".a");
  const std::string text(value);
  const std::string indices = prelude::index_list(high ? lanes / 2 : 0, lanes / 2);
  if (lanes == 2) return text + (high ? "[1]" : "[0]");
  return "__builtin_shufflevector(" + text + ", " + text + ", " + indices + ")";
}

std::string Prelude::join(std::string_view low, std::string_view high, DType dtype, int lanes) {
  const std::string both = std::string(low) + ", " + std::string(high);
  if (is_pack(bytes_of(dtype), lanes) || lanes == 2) return type(dtype, lanes) + "{" + both + "}";
  return "__builtin_shufflevector(" + both + ", " + prelude::index_list(0, lanes) + ")";
}

std::string Prelude::require_conversion(std::string_view name, DType from, DType to, int lanes) {
  std::string own = std::string(name) + "_" + shape_name(from, lanes);
  if (!defined_.insert(own).second) return own;
  const std::string source = type(from, lanes);
  const std::string result = type(to, lanes);
  std::string text;
  if (to == DType::kBFloat16 && target_.device == nullptr) {
    const std::string round = require("round_bf16", DType::kFloat32, lanes);
    const std::string single = require("to_f32", from, lanes);
    text = "\nLITZ_INLINE " + result + " " + own + "(" + source + " x) { return " + round + "(" +
           single + "(x)); }\n";
  } else if (is_half(to)) {
    const std::string bits = require("bits_" + std::string(to_string(to)), DType::kFloat32, lanes);
    const std::string back = require("from_" + std::string(to_string(to)), DType::kUInt16, lanes);
    const std::string single = require("to_f32", from, lanes);
    text = "\nLITZ_INLINE " + result + " " + own + "(" + source + " x) { return " + back + "(" +
           bits + "(" + single + "(x))); }\n";
  } else if (from == to) {
    text = "\nLITZ_INLINE " + result + " " + own + "(" + source + " x) { return x; }\n";
  } else if (is_pack(bytes_of(from), lanes) || is_pack(bytes_of(to), lanes)) {
    const std::string half = require_conversion(name, from, to, lanes / 2);
    if (target_.device != nullptr && lanes == 2) text = target_.device->pair_conversion(name, own);
    if (!text.empty()) {
      body_ += text;
      return own;
    }
    text = "\nLITZ_INLINE " + result + " " + own + "(" + source + " x) {\n  return " +
           join(half + "(" + half_of("x", from, lanes, false) + ")",
                half + "(" + half_of("x", from, lanes, true) + ")", to, lanes) +
           ";\n}\n";
  } else {
    std::string fragment =
        target_.device != nullptr ? target_.device->conversion(name, Shape{from, lanes}, to) : "";
    if (fragment.empty())
      fragment = prelude::convert_fragment(target_, name, Shape{from, lanes}, to);
    text = expand(fragment, own, name, from, lanes);
  }
  body_ += text;
  return own;
}

// Adds a function whose text is complete, unless there is one of that name.
std::string Prelude::define(std::string name, const std::string& signature_and_body) {
  if (defined_.insert(name).second) body_ += "\nLITZ_INLINE " + signature_and_body + "\n";
  return name;
}

std::string Prelude::function(PreludeFn fn, DType dtype, int lanes) {
  LITZ_CHECK(supports(fn, dtype),
             std::string(to_string(fn)) + " of " + std::string(litz::to_string(dtype)));
  return require(to_string(fn), register_dtype(dtype), lanes);
}

std::string Prelude::splat(DType dtype, int lanes) {
  return require("splat", register_dtype(dtype), lanes);
}
std::string Prelude::iota(DType dtype, int lanes) {
  return require("iota", register_dtype(dtype), lanes);
}

std::string Prelude::philox(DType result, int lanes) {
  LITZ_CHECK(result == DType::kInt32 || result == DType::kInt64,
             "random words as " + std::string(litz::to_string(result)));
  std::string own = prelude::philox_name(result) + "_" + shape_name(result, lanes);
  if (defined_.contains(own)) return own;
  const std::string value = type(result, lanes);
  const int bytes = bytes_of(result) * lanes;
  for (DType word : {DType::kUInt32, DType::kUInt64, DType::kInt64}) type(word, 1);
  const bool on_device = target_.device != nullptr;
  std::string text;
  if (lanes == 1) {
    text = prelude::philox_scalar_text(result);
  } else if (on_device) {
    text = prelude::philox_pack_text(result, lanes);
  } else if (!is_pack(bytes_of(result), lanes)) {
    const int block_bytes = std::max(bytes, 16);
    type(DType::kUInt32, block_bytes / 4);
    const std::string wide = type(DType::kUInt64, block_bytes / 8);
    if (defined_.insert("philox_blocks_" + wide).second)
      body_ += prelude::philox_blocks_text(block_bytes);
    text = prelude::philox_vector_text(result, lanes);
  }
  if (text.empty()) {
    const std::string half = philox(result, lanes / 2);
    text = "\nLITZ_INLINE " + value + " " + own + "(i64 seed, i64 index) { return {" + half +
           "(seed, index), " + half + "(seed, index + " + std::to_string(lanes / 2) + ")}; }\n";
  } else if ((lanes == 1 || on_device) && defined_.insert("philox_block").second) {
    body_ += prelude::philox_words_text();
  }
  defined_.insert(own);
  body_ += text;
  return own;
}

std::string Prelude::load_like(std::string_view name, DType memory, int lanes) {
  const bool tail = name == "load_tail";
  const std::string raw = require(name, storage_dtype(memory), lanes);
  if (storage_dtype(memory) == memory) return raw;
  const std::string own = std::string(name) + "_" + shape_name(memory, lanes);
  const std::string call = raw + (tail ? "(p, n)" : "(p)");
  const std::string value =
      memory == DType::kBool
          ? "(" + call + " != 0)"
          : require("from_" + std::string(to_string(memory)), DType::kUInt16, lanes) + "(" + call +
                ")";
  return define(own, type(memory, lanes) + " " + own + "(const " + global() + "void* p" +
                         (tail ? ", i64 n" : "") + ") { return " + value + "; }");
}

std::string Prelude::store_like(std::string_view name, DType memory, int lanes) {
  if (storage_dtype(memory) == memory) return require(name, memory, lanes);
  if (memory == DType::kBool) return store_bits(name, "", "from_mask", memory, lanes);
  return store_bits(name, "", "bits_" + std::string(to_string(memory)), memory, lanes);
}

std::string Prelude::load(DType memory, int lanes) { return load_like("load", memory, lanes); }
std::string Prelude::load_tail(DType memory, int lanes) {
  LITZ_CHECK(lanes > 1, "a scalar has no tail");
  return load_like("load_tail", memory, lanes);
}
std::string Prelude::store(DType memory, int lanes) { return store_like("store", memory, lanes); }
std::string Prelude::store_tail(DType memory, int lanes) {
  LITZ_CHECK(lanes > 1, "a scalar has no tail");
  return store_like("store_tail", memory, lanes);
}
std::string Prelude::store_exact(DType memory, int lanes) {
  return store_bits("store", "exact", "high_bf16", memory, lanes);
}
std::string Prelude::store_exact_tail(DType memory, int lanes) {
  return store_bits("store_tail", "exact", "high_bf16", memory, lanes);
}
std::string Prelude::store_flushed(DType memory, int lanes) {
  if (!has_pairs() || lanes != 16) return store(memory, lanes);
  return store_bits("store", "flushed", "flushed_bf16", memory, lanes);
}
std::string Prelude::store_flushed_tail(DType memory, int lanes) {
  if (!has_pairs() || lanes != 16) return store_tail(memory, lanes);
  return store_bits("store_tail", "flushed", "flushed_bf16", memory, lanes);
}

// Of what is stored as bits that a function gives: by one that has a name of its own only
// bfloat16 on a CPU.
std::string Prelude::store_bits(std::string_view name, std::string_view how,
                                std::string_view bits_of, DType memory, int lanes) {
  if (!how.empty() && (memory != DType::kBFloat16 || target_.device != nullptr))
    return store_like(name, memory, lanes);
  const bool tail = name == "store_tail";
  const std::string raw = require(name, storage_dtype(memory), lanes);
  const std::string bits =
      require(bits_of, memory == DType::kBool ? DType::kUInt8 : DType::kFloat32, lanes);
  const std::string own = std::string(name) + (how.empty() ? "" : "_" + std::string(how)) + "_" +
                          shape_name(memory, lanes);
  return define(own, "void " + own + "(" + global() + "void* p, " + type(memory, lanes) + " v" +
                         (tail ? ", i64 n" : "") + ") { " + raw + "(p, " + bits + "(v)" +
                         (tail ? ", n" : "") + "); }");
}

std::string Prelude::store_stream(DType memory, int lanes) {
  return store_like("store_stream", memory, lanes);
}

std::string Prelude::fence() {
  return define("sfence", "void sfence() { __builtin_ia32_sfence(); }");
}

std::string Prelude::gather(DType memory, DType offsets, int lanes) {
  const DType storage = storage_dtype(memory);
  const std::string own =
      "gather_" + shape_name(memory, lanes) + "_" + std::string(to_string(offsets));
  if (defined_.contains(own)) return own;
  const std::string value = type(memory, lanes);
  const std::string index = type(offsets, lanes);
  const std::string head = value + " " + own + "(const void* p, " + index + " o) {\n";
  if (storage != memory) {
    const std::string raw = gather(storage, offsets, lanes) + "(p, o)";
    const std::string body =
        memory == DType::kBool
            ? raw + " != 0"
            : require("from_" + std::string(to_string(memory)), DType::kUInt16, lanes) + "(" + raw +
                  ")";
    return define(own, head + "  return " + body + ";\n}");
  }
  if (is_pack(bytes_of(memory), lanes) || is_pack(bytes_of(offsets), lanes)) {
    const std::string half = gather(memory, offsets, lanes / 2);
    const std::string low = half + "(p, " + half_of("o", offsets, lanes, false) + ")";
    const std::string high = half + "(p, " + half_of("o", offsets, lanes, true) + ")";
    return define(own, head + "  return " + join(low, high, memory, lanes) + ";\n}");
  }
  std::string items = lanes == 1 ? "q[o]" : "";
  for (int i = 0; i < lanes && lanes > 1; ++i) {
    items += (i == 0 ? "q[o[" : ", q[o[") + std::to_string(i) + "]]";
  }
  return define(own, head + "  typedef " + std::string(to_string(memory)) +
                         " W __attribute__((aligned(1), may_alias));\n  const W* q = (const W*)p;\n"
                         "  return " +
                         value + "{" + items + "};\n}");
}

std::string Prelude::convert(DType from, DType to, int lanes) {
  LITZ_CHECK(from != DType::kBool && to != DType::kBool, "a mask is no number");
  return require_conversion("to_" + std::string(to_string(to)), register_dtype(from), to, lanes);
}

std::string Prelude::nonzero(DType from, int lanes) {
  from = register_dtype(from);
  const std::string own = "nonzero_" + shape_name(from, lanes);
  return define(own, type_mask(bytes_of(from), lanes) + " " + own + "(" + type(from, lanes) +
                         " x) { return x != 0; }");
}

std::string Prelude::convert_mask(int from_bytes, int to_bytes, int lanes) {
  const DType from = integer_of_bytes(from_bytes);
  const DType to = integer_of_bytes(to_bytes);
  if (lanes > 1) return require_conversion("to_" + std::string(to_string(to)), from, to, lanes);
  return define("same_mask", "bool same_mask(bool m) { return m; }");
}

std::string Prelude::mask_to(int bytes, DType to, int lanes) {
  to = register_dtype(to);
  const std::string from_mask = require("from_mask", to, lanes);
  if (bytes == bytes_of(to) || lanes == 1) return from_mask;
  const std::string own = "from_mask" + std::to_string(bytes) + "_" + shape_name(to, lanes);
  const std::string widen = convert_mask(bytes, bytes_of(to), lanes);
  return define(own, type(to, lanes) + " " + own + "(" + type_mask(bytes, lanes) + " m) { return " +
                         from_mask + "(" + widen + "(m)); }");
}

std::string Prelude::any(int bytes, int lanes) {
  return require("any_mask", integer_of_bytes(bytes), lanes);
}

std::string Prelude::all(int bytes, int lanes) {
  const std::string any_false = any(bytes, lanes);
  const std::string own = "all_mask_" + shape_name(integer_of_bytes(bytes), lanes);
  return define(own, "bool " + own + "(" + type_mask(bytes, lanes) + " m) { return !" + any_false +
                         "(m == 0); }");
}

std::string Prelude::first_lanes(int bytes, int lanes) {
  return require("first_lanes", integer_of_bytes(bytes), lanes);
}

std::string Prelude::select() {
  if (defined_.insert("select").second) {
    body_ += kSelect;
    if (defined_.contains("litz_pack")) body_ += kSelectPack;
  }
  return "select";
}

std::string Prelude::reduce(PreludeFn fn, DType dtype, int lanes) {
  LITZ_CHECK(fn == PreludeFn::kAdd || fn == PreludeFn::kMul || fn == PreludeFn::kMin ||
                 fn == PreludeFn::kMax,
             "no reduction: " + std::string(to_string(fn)));
  return require("reduce_" + std::string(to_string(fn)), register_dtype(dtype), lanes);
}
std::string Prelude::reduce_and(DType dtype, int lanes) {
  LITZ_CHECK(is_integral(dtype), "reduce_and of " + std::string(litz::to_string(dtype)));
  return require("reduce_and", dtype, lanes);
}
std::string Prelude::reduce_or(DType dtype, int lanes) {
  LITZ_CHECK(is_integral(dtype), "reduce_or of " + std::string(litz::to_string(dtype)));
  return require("reduce_or", dtype, lanes);
}

std::string Prelude::from_bits(DType half) {
  return require("from_" + std::string(litz::to_string(half)), DType::kUInt16, 1);
}
std::string Prelude::to_bits(DType half) {
  return require("bits_" + std::string(litz::to_string(half)), DType::kFloat32, 1);
}

std::string Prelude::atomic(PreludeFn fn, DType memory) {
  const std::string own =
      "atomic_" + std::string(to_string(fn)) + "_" + std::string(litz::to_string(memory));
  if (const std::string why = target_.device->missing_atomic(memory); !why.empty()) {
    add_missing(why);
    return own;
  }
  const DType storage = storage_dtype(memory);
  const std::string load = is_half(memory) ? from_bits(memory) : "";
  const std::string store = is_half(memory) ? to_bits(memory) : "";
  const std::string combine = function(fn, memory, 1);
  if (!defined_.contains("litz_atomic")) {
    defined_.insert("litz_atomic");
    body_ += target_.device->atomic_helper();
  }
  return define(
      own, target_.device->atomic(own, combine, load, store, type(memory, 1), type(storage, 1)));
}

std::string Prelude::transpose(DType dtype, int lanes) {
  LITZ_CHECK(bytes_of(dtype) >= 4 && lanes > 1 && !is_pack(bytes_of(dtype), lanes),
             "transpose of " + shape_name(dtype, lanes));
  return require("transpose", dtype, lanes);
}

std::string Prelude::text() const {
  if (target_.device == nullptr)
    return std::string(kHeader) + std::string(kScalars) + types_ + body_;
  return target_.device->header() + target_.device->scalar_types() + target_.device->helpers() +
         types_ + body_;
}

}  // namespace litz
