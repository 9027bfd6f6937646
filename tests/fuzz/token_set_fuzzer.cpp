// Any bytes may be a set of text. Every row that is read has tokens and labels of the vocabulary, numbers of
// documents that count from 0, and positions within the row.
#include <algorithm>
#include <array>

#include "data/array_input.h"
#include "data/masked_tokens.h"
#include "tests/fuzz/fuzz_file.h"

// HDF5 1.10 loses some bytes of its own on some damaged files; ours are still looked for.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  return fuzz(data, size, [&](const std::string& bytes) {
    const FuzzFile file(bytes);
    constexpr int sequence = 8;
    for (const Rows rows : {Rows::stream, Rows::packed, Rows::padded}) {
      const TokenSplits sets = read_token_set(file.path(), sequence, rows);
      for (const auto& set : {sets.train, sets.test, masked(sets.train)}) {
        const auto expect = [&](const char* array, int64_t index, int least, int end) {
          std::array<int32_t, sequence> row{};
          set->read(find_array(*set, array), index, std::as_writable_bytes(std::span(row)));
          for (const int32_t number : row)
            if (number < least || number >= end) fuzz_fail("a number out of place in", array);
        };
        for (int64_t i = 0; i < set->size(); ++i) {
          const int64_t index = i % 2 == 0 ? i : set->drawn(i, 1, i);
          expect("tokens", index, 0, set->classes());
          expect("labels", index, -1, set->classes());
          expect("documents", index, -1, sequence);
          expect("positions", index, 0, sequence);
        }
      }
    }
  });
}
