// Op schemas in torch's schema language: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar
// alpha=1) -> Tensor".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace litz {

struct SchemaArgument {
  std::string name;
  std::string
      type;  // as written: "Tensor", "Tensor?", "int[]", "SymInt[2]", "Scalar", "ScalarType?", ...
  std::string default_text;  // as written; empty where there is none
  bool has_default = false;
  bool keyword_only = false;
  bool is_mutated = false;  // alias annotation with "!"
  std::string alias_set;    // "a" of Tensor(a), empty where there is none
};

struct OpSchema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor", or "" for the default overload
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaArgument> returns;  // names may be empty

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  // Position of the argument of that name, or -1.
  int find(std::string_view argument) const;
  bool mutates() const;
};

// Throws UserError with the position where the text is not a schema.
OpSchema parse_schema(std::string_view text);

// The built-in table of ATen schemas (generated from torch by tools/generate_schemas.py) plus those
// declared by a front end.
class SchemaRegistry {
 public:
  // Looks up "aten::add.Tensor"; nullptr where unknown. The pointer stays valid as long as the
  // registry.
  const OpSchema* find(std::string_view full_name) const;
  const OpSchema& declare(std::string_view schema_text);

 private:
  mutable std::unordered_map<std::string, std::unique_ptr<OpSchema>> parsed_;
};

}  // namespace litz
