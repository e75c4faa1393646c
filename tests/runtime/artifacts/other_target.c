/* An artifact for a CPU that no machine is. */
#include <litz/artifact.h>

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {
    .abi_version = LITZ_ABI_VERSION, .description = "{\"target\": \"avx9000\"}"};
