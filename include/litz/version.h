// The version of the Litz library that a program is linked with.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// "major.minor.patch", in static storage.
const char* litz_version(void);

#ifdef __cplusplus
}
#endif
