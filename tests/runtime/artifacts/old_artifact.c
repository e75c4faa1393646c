/* An artifact of an ABI version that no runtime accepts. */
#include <litz/artifact.h>

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {.abi_version = 0};
