#include "cache/manifest.h"

#include <nlohmann/json.hpp>

#include "cache/checksum.h"

namespace litz {
namespace {

using Json = nlohmann::ordered_json;

// Bytes that are not UTF-8 are replaced: field values are here to be read by people.
std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string print_manifest(const Manifest& manifest) {
  Json fields = Json::array();
  for (const KeyField& field : manifest.key.fields) fields.push_back({field.name, field.value});
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  }
  Json body = {{"digest", manifest.key.digest}, {"fields", fields}, {"files", files}};
  std::string checksum = checksum_bytes(dump(body));
  return dump(Json{{"checksum", checksum}, {"entry", body}}) + "\n";
}

std::optional<Manifest> parse_manifest(const std::string& text) {
  try {
    Json json = Json::parse(text);
    const Json& body = json.at("entry");
    if (json.at("checksum") != checksum_bytes(dump(body))) return std::nullopt;
    Manifest manifest;
    body.at("digest").get_to(manifest.key.digest);
    for (const Json& field : body.at("fields")) {
      manifest.key.fields.push_back(
          {field.at(0).get<std::string>(), field.at(1).get<std::string>()});
    }
    for (const Json& file : body.at("files")) {
      manifest.files.push_back({file.at("name").get<std::string>(),
                                file.at("bytes").get<uint64_t>(),
                                file.at("checksum").get<std::string>()});
    }
    return manifest;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace litz
