// Tests random numbers and hashes against published answers: plans and seeds must mean the same tomorrow.
#include "framework/random.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

// These are the known answers of Salmon et al.'s reference implementation (Random123, kat_vectors, philox4x32
// 10 rounds).
TEST(Philox, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(Philox(0).words(0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(0xffffffffffffffff).words(0xffffffffffffffff, 0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822).words(0x85a308d3243f6a88, 0x0370734413198a2e),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(Philox::uniform(0), 0.0f);
  EXPECT_LT(Philox::uniform(0xffffffff), 1.0f);
}

TEST(Hash, IsStable) {                             // plans and checkpoints of today must be readable tomorrow
  EXPECT_EQ(hash_bytes(""), 0x2d06800538d394c2u);  // XXH3_64bits of nothing, from its specification
  EXPECT_NE(hash_bytes("conv1.weight"), hash_bytes("conv2.weight"));
  EXPECT_NE(mix(1, 2), mix(2, 1));
}

TEST(Hash, MixesAsTheLibraryDoes) {
  static_assert(mix(0, 0) != 0, "device code asks, too");
  const Philox random(1);
  for (uint64_t i = 0; i < 10'000; ++i) {
    const auto w = random.words(i);
    uint64_t parts[] = {uint64_t(w[0]) << 32 | w[1], uint64_t(w[2]) << 32 | w[3]};
    if (i % 3 == 0) parts[i % 2] = i / 3;  // small numbers, too
    EXPECT_EQ(mix(parts[0], parts[1]), hash_bytes({reinterpret_cast<const char*>(parts), sizeof parts}));
  }
}

}  // namespace
}  // namespace antichain
