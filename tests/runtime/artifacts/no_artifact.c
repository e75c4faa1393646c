/* A library that is no artifact. */
__attribute__((visibility("default"))) const int something_else = 1;
