#include "driver/library_call.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace litz {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Json> numbers(const std::vector<Index>& values) {
  Json list = Json::array();
  for (Index value : values) {
    if (!value.is_constant()) return std::nullopt;
    list.push_back(value.constant());
  }
  return list;
}

std::optional<Json> describe(const ExternArgument& argument);

std::optional<Json> describe_all(const std::vector<ExternArgument>& arguments) {
  Json list = Json::array();
  for (const ExternArgument& argument : arguments) {
    std::optional<Json> described = describe(argument);
    if (!described) return std::nullopt;
    list.push_back(std::move(*described));
  }
  return list;
}

std::optional<Json> describe(const ExternArgument& argument) {
  if (std::holds_alternative<std::monostate>(argument.v)) return Json(nullptr);
  if (const auto* number = std::get_if<double>(&argument.v)) return Json(*number);
  if (const auto* truth = std::get_if<bool>(&argument.v)) return Json(*truth);
  if (const auto* list = std::get_if<ExternList>(&argument.v)) return describe_all(*list);
  if (const auto* index = std::get_if<Index>(&argument.v))
    return index->is_constant() ? std::optional<Json>(index->constant()) : std::nullopt;
  const auto* view = std::get_if<BufferView>(&argument.v);
  if (view == nullptr) return std::nullopt;
  const std::optional<Json> sizes = numbers(view->sizes);
  const std::optional<Json> strides = numbers(view->strides);
  if (!sizes || !strides) return std::nullopt;
  return Json{
      {"dtype", std::string(to_string(view->dtype))}, {"sizes", *sizes}, {"strides", *strides}};
}

}  // namespace

std::optional<std::string> describe_library_call(const ExternKernel& call) {
  // Of other libraries tensors may be more than their elements.
  if (!call.name.starts_with("aten::")) return std::nullopt;
  const std::optional<Json> arguments = describe_all(call.arguments);
  if (!arguments) return std::nullopt;
  return Json{{"op", call.name}, {"overload", call.overload}, {"arguments", *arguments}}.dump();
}

}  // namespace litz
