/* A library that is named as NVRTC and has none of its functions. */
int litz_test_empty_nvrtc(void);
int litz_test_empty_nvrtc(void) { return 0; }
