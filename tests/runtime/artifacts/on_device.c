/* An artifact whose kernels are for a device. */
#include <litz/artifact.h>

static const char* const kernels[] = {"kernel0"};
static const LitzDeviceCode code = {"sm_90", "", 0, kernels, 1};

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {
    .abi_version = LITZ_ABI_VERSION, .description = "{}", .device_code = &code};
