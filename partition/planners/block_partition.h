// A block partition of a sequence has contiguous blocks whose sums differ by no more than the largest
// element.
//
// Such a partition always exists, and elements that move one at a time from block to block find it: I. Bárány
// and V. S. Grinberg, "Block partitions of sequences", Israel Journal of Mathematics, 2015. torchgpipe
// balances its stages in this way.
#pragma once

#include <cstdint>
#include <vector>

namespace antichain {

// Returns where each of `blocks` non-empty blocks ends; the last is the number of elements. Elements are at
// least 0, their sum fits in an int64_t, and 1 <= blocks <= elements. The result is deterministic. At most
// O(blocks x elements³) moves are proved; on profiles it is a few per element.
std::vector<int> block_partition(const std::vector<int64_t>& elements, int blocks);

}  // namespace antichain
