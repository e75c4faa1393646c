// Op schemas in torch's schema language: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar
// alpha=1) -> Tensor".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/argument.h"
#include "support/dtype.h"

namespace litz {

// X(enumerator, spelling): the base types that Litz tells apart. Everything else (Storage, Stream,
// Dict, torch classes) is kOther and accepts only None.
#define LITZ_SCHEMA_TYPES(X)       \
  X(kTensor, "Tensor")             \
  X(kInt, "int")                   \
  X(kSymInt, "SymInt")             \
  X(kFloat, "float")               \
  X(kBool, "bool")                 \
  X(kComplex, "complex")           \
  X(kScalar, "Scalar")             \
  X(kString, "str")                \
  X(kScalarType, "ScalarType")     \
  X(kDevice, "Device")             \
  X(kLayout, "Layout")             \
  X(kMemoryFormat, "MemoryFormat") \
  X(kGenerator, "Generator")       \
  X(kOther, "")

enum class SchemaType : uint8_t {
#define LITZ_SCHEMA_TYPE_ENUM(name, spelling) name,
  LITZ_SCHEMA_TYPES(LITZ_SCHEMA_TYPE_ENUM)
#undef LITZ_SCHEMA_TYPE_ENUM
};

// What torch's op tags promise. The enumerators are bits of OpSchema::tags.
enum OpTag : uint8_t {
  kPointwise = 1,      // torch.Tag.pointwise
  kRandom = 2,         // draws from a generator: torch.Tag.nondeterministic_seeded
  kDataDependent = 4,  // gives a scalar that depends on elements: torch.Tag.data_dependent_output
  kDynamicShape = 8,   // gives sizes that depend on elements: torch.Tag.dynamic_output_shape
  kMayAlias = 16,      // may alias or write its arguments beyond what the schema says:
                       // torch.Tag.maybe_aliasing_or_mutating
};

struct SchemaArgument {
  std::string name;  // may be empty for a return
  std::string type;  // as written, without alias annotation: "Tensor?", "SymInt[2]", "Tensor?[]"
  SchemaType base = SchemaType::kOther;
  bool is_list = false;              // "T[]", "T[2]", "T[]?"
  bool is_optional = false;          // "T?", "T[]?": None is admitted
  bool is_element_optional = false;  // "T?[]"
  uint32_t list_size = 0;            // N of "T[N]": one element stands for N of them
  bool has_default = false;
  std::string default_text;  // as written; empty where there is none
  Argument default_value;    // default_text read as `type`
  bool keyword_only = false;
  bool is_mutated = false;  // alias annotation with "!"
  std::string alias_set;    // "a" of Tensor(a), Tensor(a!) and Tensor(a -> *); may be empty
  std::string alias_after;  // "*" of Tensor(a -> *); mostly empty
};

struct OpSchema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor", or "" for the default overload
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaArgument> returns;
  uint8_t tags = 0;         // OpTag bits; known for ops of the built-in table only
  bool is_builtin = false;  // an op of the built-in table, so its tags are known

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  // Position of the argument of that name, or -1.
  int find(std::string_view argument) const;
  bool mutates() const;
  bool has_tag(OpTag tag) const { return (tags & tag) != 0; }
};

// Throws UserError with the position where the text is not a schema.
OpSchema parse_schema(std::string_view text);

// The text, as torch prints it.
std::string to_string(const OpSchema& schema);

// torch.ScalarType's number, which schema defaults and exported programs use; nullopt for quantized
// and newer dtypes.
std::optional<DType> dtype_of_scalar_type(int64_t number);

}  // namespace litz
