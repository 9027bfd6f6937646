#include "data/masked_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/random.h"

namespace antichain {
namespace {

constexpr double chosen_share = 0.15, hidden_share = 0.8, replaced_share = 0.1;
constexpr int variant_bits = 20;  // masks of an epoch are one of so many

// Returns a number below `count`.
int64_t below(uint32_t word, int64_t count) { return int64_t((uint64_t(word) * uint64_t(count)) >> 32); }

// Says what becomes of a token.
struct Fate {
  bool chosen, hidden, replaced;
  uint32_t word;  // draws what replaces it

  Fate(uint64_t key, int64_t place) {
    const auto words = Philox(key).words(uint64_t(place));
    const double kind = double(words[1]) * 0x1p-32;
    chosen = double(words[0]) * 0x1p-32 < chosen_share;
    hidden = chosen && kind < hidden_share;
    replaced = chosen && !hidden && kind < hidden_share + replaced_share;
    word = words[2];
  }
};

class MaskedTokens : public TokenSet {
 public:
  explicit MaskedTokens(std::shared_ptr<const TokenSet> of)
      : of_(std::move(of)), sequence_(of_->arrays()[0].spec.shape[0]), rows_(of_->size() * sequence_) {}

  std::string name() const override { return of_->name(); }
  const std::string& tokenizer() const override { return of_->tokenizer(); }
  int64_t tokens() const override { return of_->tokens(); }
  int64_t documents() const override { return of_->documents(); }
  int64_t size() const override { return of_->size(); }
  std::optional<int> mask() const override { return of_->mask().value_or(of_->classes()); }
  int classes() const override { return of_->classes() + !of_->mask(); }
  std::vector<std::string> files() const override { return of_->files(); }
  std::string replaced() const override { return of_->replaced(); }

  std::vector<SampleArray> arrays() const override {
    std::vector<SampleArray> all = of_->arrays();
    all.push_back({"token_types", all[0].spec});
    return all;
  }

  std::vector<std::pair<std::string, std::string>> form() const override {
    auto all = of_->form();
    all.emplace_back("the mask", std::to_string(*mask()));
    return all;
  }

  // The masks of an epoch have a number, which counts rows from as many further on as there can be.
  int64_t drawn(int64_t index, uint64_t seed, int64_t epoch) const override {
    const auto words = Philox(mix(seed, hash_bytes("masked tokens"))).words(uint64_t(epoch));
    return int64_t(words[0] >> (32 - variant_bits)) * rows_ + of_->drawn(index, seed, epoch);
  }

  void read(size_t array, int64_t index, std::span<std::byte> out) const override {
    if (array >= of_->arrays().size()) return void(std::ranges::fill(out, std::byte{0}));
    const int64_t row = index % rows_;
    of_->read(array == labels ? tokens_array : array, row, out);
    if (array != tokens_array && array != labels) return;
    thread_local std::vector<int32_t> documents;
    documents.resize(size_t(sequence_));
    of_->read(documents_array, row, std::as_writable_bytes(std::span(documents)));
    const std::span<int32_t> to(reinterpret_cast<int32_t*>(out.data()), size_t(sequence_));
    const uint64_t key = mix(uint64_t(index / rows_), hash_bytes("mask of a token"));
    for (int64_t i = 0; i < sequence_; ++i) {
      const Fate fate(key, row * sequence_ + i);
      int32_t& token = to[size_t(i)];
      const bool counts = documents[size_t(i)] >= 0 && fate.chosen;
      if (array == labels && !counts) token = -1;
      if (array == labels || !counts) continue;
      if (fate.hidden) token = *mask();
      if (fate.replaced) token = int32_t(below(fate.word, of_->classes()));
    }
  }

 private:
  static constexpr size_t tokens_array = 0, labels = 1, documents_array = 2;

  const std::shared_ptr<const TokenSet> of_;
  const int64_t sequence_, rows_;  // rows_: as many as `of_` can draw
};

}  // namespace

std::shared_ptr<const TokenSet> masked(std::shared_ptr<const TokenSet> set) {
  return std::make_shared<MaskedTokens>(std::move(set));
}

}  // namespace antichain
