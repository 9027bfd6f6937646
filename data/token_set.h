// Reads text that is a stream of tokens from an HDF5 file, as `antichain data tokens` and the Python package
// write it:
//
//   /train/tokens, /test/tokens         integers, 0 … vocabulary − 1, all documents one behind the other
//   /train/documents, /test/documents   where each document begins, ascending from 0
//
// and attributes of the root: vocabulary (a number), tokenizer ("bytes", or a name), name (of the set), and
// perhaps mask (the number of the token that stands for hidden ones, data/masked_tokens.h).
//
// A sample is a row of `sequence` tokens. Its arrays are those that language models read, int32:
//
//   tokens      0 where nothing is left
//   labels      the token that follows each token; −1, which no loss counts, where there is none
//   documents   the number of the token's document within its row, −1 where nothing is left: a position
//               attends to those of its own number
//   positions   0, 1, 2 … within the document, or within the row where the document began before it
//
// The stream is cut into rows in one of three ways (Rows). Tokens stay in the file and are read when they are
// requested, so the set may be larger than memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/data_set.h"

namespace antichain {

enum class Rows {
  // Every so many tokens begin a row, whatever documents they belong to: a row is one document. An epoch of
  // training begins its first row at a token that is drawn by (seed, epoch) from the first `sequence` ones,
  // as Karpathy's nanoGPT (2022) draws every row's; so no two epochs have the same rows.
  stream,
  // The same rows, but a label at the end of a document counts nothing, and documents and positions tell the
  // documents of a row apart: Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021.
  packed,
  padded,  // a row has one document, or a part of a longer one; what is left of the row counts nothing
};
constexpr std::string_view rows_names[] = {"stream", "packed", "padded"};
constexpr std::span<const std::string_view> names(Rows) { return rows_names; }

// Says whether a file has /train/tokens. Throws Error when it can't be read.
bool is_token_set(const std::string& file);

class TokenSet : public DataSet {
 public:
  virtual const std::string& tokenizer() const = 0;
  virtual int64_t tokens() const = 0;     // in the stream
  virtual int64_t documents() const = 0;  // in the stream
  virtual std::optional<int> mask() const = 0;
};

struct TokenSplits {
  std::shared_ptr<const TokenSet> train, test;
  operator DataSplits() const { return {train, test}; }
};

// Throws Error when the file is not as above, or a split has not a row. The error names the file, and the
// token that is none of the vocabulary when it is read.
TokenSplits read_token_set(const std::string& file, int64_t sequence, Rows);

}  // namespace antichain
