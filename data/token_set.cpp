#include "data/token_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "data/hdf5_images.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/random.h"

namespace antichain {
namespace {

constexpr const char* written_by = "antichain data tokens writes such a file";

// The tokens of a split, and where its documents begin.
class TokenStream {
 public:
  TokenStream(std::shared_ptr<OpenHdf5> file, const std::string& split, int64_t vocabulary)
      : file_(std::move(file)), stored_(file_->open_any(split + "/tokens")), vocabulary_(vocabulary) {
    if (stored_.spec.shape.size() != 1 || stored_.spec.type == ArrayType::f32)
      throw Error(fmt::format("{}: '{}' is no stream of integers", path(), stored_.spec.path), written_by);
    const ArrayReader::Opened starts = file_->open(split + "/documents", ArrayType::i64);
    if (starts.spec.shape.size() != 1)
      throw Error(fmt::format("{}: '{}' is no list of places", path(), starts.spec.path), written_by);
    starts_.resize(size_t(starts.spec.shape[0]));
    file_->reader.read(starts, 0, std::as_writable_bytes(std::span(starts_)));
    const bool ascend = std::ranges::adjacent_find(starts_, std::greater_equal()) == starts_.end();
    if (starts_.empty() || starts_.front() != 0 || !ascend || starts_.back() >= size())
      throw Error(fmt::format("{}: '{}' does not ascend from 0 to a token", path(), starts.spec.path),
                  written_by);
  }

  const std::string& path() const { return file_->watched.path(); }
  int64_t size() const { return stored_.spec.shape[0]; }
  int64_t documents() const { return std::ssize(starts_); }
  // Returns the number of the document that has the token.
  int64_t document_of(int64_t token) const {
    return std::ranges::upper_bound(starts_, token) - starts_.begin() - 1;
  }
  int64_t begin_of(int64_t document) const { return starts_[size_t(document)]; }
  int64_t end_of(int64_t document) const {
    return document + 1 < documents() ? starts_[size_t(document + 1)] : size();
  }
  void read(int64_t first, std::span<int32_t> out) const {
    const bool bytes = stored_.spec.type == ArrayType::u8;
    thread_local std::vector<uint8_t> narrow;
    thread_local std::vector<int64_t> wide;
    if (bytes) {
      narrow.resize(out.size());
      read_rows(first, narrow);
      return take(narrow, first, out);
    }
    wide.resize(out.size());
    file_->check_unchanged(first);
    file_->reader.read(stored_, first, std::as_writable_bytes(std::span(wide)));
    take(wide, first, out);
  }
  const OpenHdf5& file() const { return *file_; }

 private:
  void read_rows(int64_t first, std::span<uint8_t> out) const {
    if (stored_.offset) return file_->watched.read(*stored_.offset + first, out, first);
    file_->check_unchanged(first);
    file_->reader.read(stored_, first, std::as_writable_bytes(out));
  }
  template <class Number>
  void take(const std::vector<Number>& from, int64_t first, std::span<int32_t> out) const {
    for (size_t i = 0; i < out.size(); ++i) {
      const auto token = int64_t(from[i]);
      if (token < 0 || token >= vocabulary_)
        throw Error(fmt::format("{}: token {} of '{}' is {}, but the vocabulary has {}", path(),
                                first + int64_t(i), stored_.spec.path, token, vocabulary_),
                    "tokens count from 0");
      out[i] = int32_t(token);
    }
  }

  std::shared_ptr<OpenHdf5> file_;
  ArrayReader::Opened stored_;
  int64_t vocabulary_;
  std::vector<int64_t> starts_;
};

struct TokenFacts {
  std::string name, tokenizer;
  int64_t vocabulary = 0;
  std::optional<int> mask = {};
};

// A row has `tokens` tokens from `first` on. Those before `end` may be labels.
struct Row {
  int64_t first = 0, tokens = 0, end = 0;
};

class TokenRows : public TokenSet {
 public:
  // Rows for tests are never drawn, and go on to the end of the stream: the last one is filled up.
  TokenRows(std::shared_ptr<OpenHdf5> file, const std::string& split, TokenFacts facts, int64_t sequence,
            Rows rows)
      : stream_(std::move(file), split, facts.vocabulary),
        facts_(std::move(facts)),
        sequence_(sequence),
        rows_(rows),
        drawn_(split == "train" && rows != Rows::padded) {
    if (rows_ == Rows::padded)
      for (int64_t d = 0; d < stream_.documents(); ++d) {
        first_rows_.push_back(size_);
        size_ += (stream_.end_of(d) - stream_.begin_of(d) - 1 + sequence - 1) / sequence;
      }
    else
      size_ =
          drawn_ ? (stream_.size() - sequence) / sequence : (stream_.size() - 1 + sequence - 1) / sequence;
    if (size_ < 1 && rows_ == Rows::padded)
      throw Error(fmt::format("{}: /{} has no document of two tokens", stream_.path(), split),
                  "each token is to be followed by another of its document");
    if (size_ < 1)
      throw Error(fmt::format("{}: /{} has {} tokens, which are less than {} of {}", stream_.path(), split,
                              stream_.size(), drawn_ ? "two rows" : "a row", sequence),
                  "use a shorter --sequence or more text");
  }

  std::string name() const override { return facts_.name; }
  const std::string& tokenizer() const override { return facts_.tokenizer; }
  int64_t tokens() const override { return stream_.size(); }
  int64_t documents() const override { return stream_.documents(); }
  std::optional<int> mask() const override { return facts_.mask; }
  int64_t size() const override { return size_; }
  int classes() const override { return int(facts_.vocabulary); }
  std::vector<std::string> files() const override { return stream_.file().files(); }
  std::string replaced() const override { return stream_.file().replaced(); }

  std::vector<SampleArray> arrays() const override {
    const TensorSpec row{{sequence_}, DType::i32};
    return {{"tokens", row}, {"labels", row}, {"documents", row}, {"positions", row}};
  }

  std::vector<std::pair<std::string, std::string>> form() const override {
    return {{"the vocabulary", std::to_string(facts_.vocabulary)},
            {"the rows", fmt::format("{} tokens, {}", sequence_, names(rows_)[size_t(rows_)])}};
  }

  // Row i that begins `offset` tokens later is sample offset · size() + i.
  int64_t drawn(int64_t index, uint64_t seed, int64_t epoch) const override {
    if (!drawn_) return index;
    const Philox random(mix(seed, hash_bytes("first token of the rows")));
    const uint64_t offset = (uint64_t(random.words(uint64_t(epoch))[0]) * uint64_t(sequence_)) >> 32;
    return int64_t(offset) * size_ + index;
  }

  void read(size_t array, int64_t index, std::span<std::byte> out) const override {
    const Row row = row_of(index);
    const std::span<int32_t> to(reinterpret_cast<int32_t*>(out.data()), size_t(sequence_));
    const std::span<int32_t> used = to.first(size_t(row.tokens)), rest = to.subspan(size_t(row.tokens));
    std::ranges::fill(rest, array == 1 || array == 2 ? -1 : 0);
    if (array == 0) stream_.read(row.first, used);
    if (array == 1) read_labels(row, used);
    if (array >= 2) number(row, array == 3, used);
  }

 private:
  Row row_of(int64_t index) const {
    if (rows_ != Rows::padded) {
      const int64_t first = index % size_ * sequence_ + index / size_, end = stream_.size();
      return {first, std::min(sequence_, end - first), end};
    }
    const int64_t document = std::ranges::upper_bound(first_rows_, index) - first_rows_.begin() - 1;
    const int64_t end = stream_.end_of(document),
                  first = stream_.begin_of(document) + (index - first_rows_[size_t(document)]) * sequence_;
    return {first, std::min(sequence_, end - first), end};
  }

  void read_labels(const Row& row, std::span<int32_t> used) const {
    const int64_t count = std::min(row.tokens, row.end - row.first - 1);
    stream_.read(row.first + 1, used.first(size_t(count)));
    std::ranges::fill(used.subspan(size_t(count)), -1);
    if (rows_ != Rows::packed) return;
    for (int64_t d = stream_.document_of(row.first); stream_.end_of(d) <= row.first + row.tokens; ++d) {
      used[size_t(stream_.end_of(d) - 1 - row.first)] = -1;
      if (stream_.end_of(d) == stream_.size()) return;
    }
  }

  // Writes the numbers of the documents, or the positions within them.
  void number(const Row& row, bool positions, std::span<int32_t> used) const {
    int64_t document = stream_.document_of(row.first), begin = row.first;
    int32_t count = 0;
    for (int64_t i = 0; i < row.tokens; ++i) {
      const int64_t token = row.first + i;
      if (rows_ == Rows::packed && token == stream_.end_of(document)) ++document, ++count, begin = token;
      used[size_t(i)] = positions ? int32_t(token - begin) : count;
    }
  }

  const TokenStream stream_;
  const TokenFacts facts_;
  const int64_t sequence_;
  const Rows rows_;
  const bool drawn_;
  int64_t size_ = 0;
  std::vector<int64_t> first_rows_;  // of each document, where a row has one
};

TokenFacts facts_of(const OpenHdf5& file) {
  const auto vocabulary = file.reader.numbers("/", "vocabulary");
  const auto tokenizer = file.reader.strings("/", "tokenizer");
  const bool fits = vocabulary && vocabulary->size() == 1 && (*vocabulary)[0] >= 2 &&
                    (*vocabulary)[0] <= INT32_MAX && (*vocabulary)[0] == std::floor((*vocabulary)[0]);
  if (!fits || !tokenizer || tokenizer->size() != 1)
    throw Error(fmt::format("{} lacks the attribute vocabulary, a number of tokens, or tokenizer, a name",
                            file.watched.path()),
                written_by);
  TokenFacts facts{printable(file.name()), printable((*tokenizer)[0]), int64_t((*vocabulary)[0])};
  const auto mask = file.reader.numbers("/", "mask");
  if (!mask) return facts;
  const bool is_token = mask->size() == 1 && (*mask)[0] >= 0 && (*mask)[0] < (*vocabulary)[0] &&
                        (*mask)[0] == std::floor((*mask)[0]);
  if (!is_token)
    throw Error(fmt::format("{} has an attribute mask that is no token of its vocabulary of {}",
                            file.watched.path(), facts.vocabulary),
                written_by);
  facts.mask = int((*mask)[0]);
  return facts;
}

}  // namespace

bool is_token_set(const std::string& file) { return ArrayReader(file).has("train/tokens"); }

TokenSplits read_token_set(const std::string& path, int64_t sequence, Rows rows) {
  ANTICHAIN_CHECK(sequence >= 1, "a row has a token");
  const auto file = std::make_shared<OpenHdf5>(path);
  for (const char* part : {"train/tokens", "train/documents", "test/tokens", "test/documents"})
    if (!file->reader.has(part)) throw Error(fmt::format("{} has no dataset '/{}'", path, part), written_by);
  const TokenFacts facts = facts_of(*file);
  return {.train = std::make_shared<TokenRows>(file, "train", facts, sequence, rows),
          .test = std::make_shared<TokenRows>(file, "test", facts, sequence, rows)};
}

}  // namespace antichain
