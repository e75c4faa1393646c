#include "cache/cache_key.h"

#include <gtest/gtest.h>

#include <set>

#include "cache/manifest.h"

namespace litz {
namespace {

TEST(CacheKey, EqualFieldsGiveEqualDigests) {
  CacheKey a = KeyBuilder().field("target", "avx2").field("version", 3).finish();
  CacheKey b = KeyBuilder().field("target", "avx2").field("version", "3").finish();
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.fields, b.fields);
  EXPECT_EQ(a.digest.size(), 32u);
  EXPECT_EQ(a.digest.find_first_not_of("0123456789abcdef"), std::string::npos);
}

// The digest is on disk: a change of it is a change of the cache's format.
TEST(CacheKey, DigestsStayTheSameFromVersionToVersion) {
  EXPECT_EQ(KeyBuilder().field("target", "avx2").field("version", 3).finish().digest,
            "3263253edc08735bebc0c648b40de1b1");
}

TEST(CacheKey, FieldsDoNotRunIntoEachOther) {
  auto digest = [](std::vector<KeyField> fields) {
    KeyBuilder builder;
    for (const KeyField& field : fields) builder.field(field.name, field.value);
    return builder.finish().digest;
  };
  std::vector<std::vector<KeyField>> different = {
      {},
      {{"", ""}},
      {{"", ""}, {"", ""}},
      {{"a", "b"}},
      {{"ab", ""}},
      {{"", "ab"}},
      {{"a", "bc"}, {"d", "e"}},
      {{"a", "b"}, {"cd", "e"}},
      {{"d", "e"}, {"a", "bc"}},
      {{"a", std::string("b\0", 2)}},
      {{"1:a", "b"}},
  };
  std::set<std::string> digests;
  for (const auto& fields : different) digests.insert(digest(fields));
  EXPECT_EQ(digests.size(), different.size());
}

TEST(CacheKey, LongValuesAreKeptAsTheirChecksum) {
  CacheKey a = KeyBuilder().field("graph", std::string(10000, 'x')).finish();
  CacheKey b = KeyBuilder().field("graph", std::string(9999, 'x') + "y").finish();
  EXPECT_LT(a.fields[0].value.size(), 100u);
  EXPECT_TRUE(a.fields[0].value.starts_with("<10000 bytes"));
  EXPECT_NE(a.fields[0].value, b.fields[0].value);
  EXPECT_NE(a.digest, b.digest);
}

TEST(Manifest, RoundTrips) {
  Manifest manifest{KeyBuilder().field("quote\"\n", "\xff not UTF-8").field("n", 1).finish(),
                    {{"model.so", 12, "abc"}, {"log.txt", 0, "def"}}};
  std::optional<Manifest> read = parse_manifest(print_manifest(manifest));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key.digest, manifest.key.digest);
  EXPECT_EQ(read->key.fields[0].name, "quote\"\n");
  EXPECT_EQ(read->key.fields[0].value, "\xef\xbf\xbd not UTF-8");
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].name, "model.so");
  EXPECT_EQ(read->files[0].bytes, 12u);
  EXPECT_EQ(read->files[1].checksum, "def");
}

TEST(Manifest, DamageIsSeen) {
  std::string text = print_manifest({KeyBuilder().field("a", "b").finish(), {{"f", 1, "c"}}});
  for (size_t cut = 0; cut + 1 < text.size(); ++cut) {
    EXPECT_FALSE(parse_manifest(text.substr(0, cut))) << cut;
  }
  for (const char* other : {"[]", "null", "{}", "{\"checksum\":\"\",\"entry\":{}}", "\xff"}) {
    EXPECT_FALSE(parse_manifest(other)) << other;
  }
}

}  // namespace
}  // namespace litz
