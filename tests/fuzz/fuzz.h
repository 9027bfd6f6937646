// Every fuzz target demands the same of its reader: whatever the bytes are, it returns or throws an Error
// about them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/error.h"

namespace antichain {

inline void fuzz_fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
  std::abort();
}

// Calls `use(text)`. Any exception but an Error that blames the input ends the run.
template <class Use>
int fuzz(const uint8_t* data, size_t size, Use use) {
  try {
    use(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) fuzz_fail("an invariant broke:", error.what());
  }
  return 0;
}

// What was written once reads back, and is then written the same.
template <class Read, class Write>
void expect_round_trip(const std::string& written, Read read, Write write) {
  try {
    const std::string again = write(read(written));
    if (again != written) fuzz_fail("changed by a round trip:", written + "became\n" + again);
  } catch (const Error& error) {
    fuzz_fail("we refuse what we wrote:", written + error.what());
  }
}

}  // namespace antichain
