// Writes text into an HDF5 file of the layout that data/token_set.h describes. Its bytes are the tokens: a
// vocabulary of 256.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace antichain {

struct PackTextOptions {
  double validation = 0.1;  // the share of all tokens, the last ones, that is the split for tests
  std::string separator;    // ends a document, and stays its end; "": each file is one
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};  // bytes
};

struct PackedText {
  int64_t train_tokens = 0, test_tokens = 0, documents = 0;
};

// The name of the set is that of `out`. The text files are read block by block, twice. The file is whole and
// synced, or does not exist; equal texts make equal bytes. A document that the splits part goes on in the
// second one. Throws Error naming the file that can't be read, is empty, or changed meanwhile.
PackedText pack_text(const std::vector<std::string>& files, const std::string& out,
                     const PackTextOptions& = {});

}  // namespace antichain
