// Uses an installed Litz as a program outside this repository would.
#include <litz/version.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  std::printf("litz %s\n", litz_version());
  return argc == 2 && std::strcmp(argv[1], litz_version()) == 0 ? 0 : 1;
}
