/* An artifact whose kernels are for a device. */
#include <litz/artifact.h>

static const LitzDeviceImage image = {"", 0};
static const LitzDeviceKernel kernel = {"kernel0", 0};
static const LitzDeviceCode code = {"sm_90", &image, &kernel, 1, 1};

__attribute__((visibility("default"))) const LitzArtifact litz_artifact = {
    .abi_version = LITZ_ABI_VERSION, .description = "{}", .device_code = &code};
