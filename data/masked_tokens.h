// MaskedTokens hides some tokens of a text from a network that reads it in both directions, and has it find
// them: the masked language modelling of Devlin et al., "BERT: Pre-training of Deep Bidirectional
// Transformers for Language Understanding", NAACL 2019, section 3.1.
//
// It chooses 15 % of a row's tokens, each by itself. Of these 80 % become the mask, 10 % become another
// token, drawn from the vocabulary, and 10 % stay as they are. The arrays are those of data/token_set.h, with
//
//   labels       the token itself where it was chosen; −1, which no loss counts, everywhere else
//   token_types  0: a row has no second text
//
// The choice is a function of seed, epoch, row and place. For tests it is always the same.
#pragma once

#include <memory>

#include "data/token_set.h"

namespace antichain {

// Returns the set with tokens hidden. The mask is the set's own where it has one, else it is a token behind
// the vocabulary, which is then larger by one.
std::shared_ptr<const TokenSet> masked(std::shared_ptr<const TokenSet>);

}  // namespace antichain
